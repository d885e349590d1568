// Sums and means of looked-up rows become EmbeddingBag, plain, weighted or masked:
//   ReduceSum(Gather(table, ids)), ReduceSum(Gather(table, ids) * weights),
//   ReduceSum(Where(mask, Gather(table, ids), 0)), over the last axis of ids.
// The rows in between, as many as there are ids, are then never written, nor is their gradient.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

struct Found {
  NodeId gather;
  ValueId weights;       // factor of a product, else -1
  ValueId mask;          // condition of a Where, else -1
  bool keeps_at = true;  // the value of the mask where rows are kept
  explicit operator bool() const { return static_cast<bool>(gather); }
};

class BagMatch {
 public:
  BagMatch(const Match& match, const std::vector<std::vector<NodeId>>& readers)
      : match_(match), graph_(match.graph()), readers_(readers) {}

  Found find(const Node& reduction) const {
    if (reduction.op->reducer != Reducer::sum && reduction.op->reducer != Reducer::mean) return {};
    const ValueId summed = reduction.inputs[0];
    Found found = weighed(summed);
    if (!found) return {};
    const Node& gather = graph_.node(found.gather);
    const ValueId rows = gather.outputs[0];
    const Value& table = graph_.value(gather.inputs[0]);
    const Shape& ids = graph_.type(gather.inputs[1]).shape;
    const bool fits = gather.attributes.integer("axis") == 0 && table.kind == ValueKind::state &&
                      is_float(table.type.dtype) && !graph_.is_constant(gather.inputs[1]) &&
                      !ids.empty() && graph_.type(rows).elements() > 0 &&
                      graph_.type(rows) == graph_.type(summed);
    if (!fits || reduction.attributes.integers("axes") != Ints{last_axis(ids)}) return {};
    if (!is_private(rows) || !is_private(summed)) return {};
    const ValueId factor = found.weights ? found.weights : found.mask;
    if (factor && !leading(factor, table.type.rank() - 1)) return {};
    return found;
  }

  /// The shape of a factor of the rows without their own axes, along which it must not vary;
  /// nothing where it does, or where it does not reach the ids.
  std::optional<Shape> leading(ValueId factor, std::size_t row_axes) const {
    Shape shape = graph_.type(factor).shape;
    if (shape.size() <= row_axes) return std::nullopt;
    for (std::size_t i = 0; i < row_axes; ++i) {
      if (shape.back() != 1) return std::nullopt;
      shape.pop_back();
    }
    return shape;
  }

 private:
  static std::int64_t last_axis(const Shape& ids) {
    return static_cast<std::int64_t>(ids.size()) - 1;
  }

  NodeId lookup(ValueId value) const {
    return match_.is(value, "Gather") != nullptr ? match_.producer(value) : NodeId{};
  }

  Found weighed(ValueId value) const {
    if (const NodeId gather = lookup(value)) return {.gather = gather};
    if (const Node* product = match_.is(value, "Mul")) {
      for (std::size_t i = 0; i < 2; ++i) {
        const NodeId gather = lookup(product->inputs[i]);
        const ValueId weights = product->inputs[1 - i];
        if (gather && !(weights == product->inputs[i]))
          return {.gather = gather, .weights = weights};
      }
    }
    if (const Node* where = match_.is(value, "Where")) {
      for (std::size_t i = 1; i < 3; ++i) {
        const NodeId gather = lookup(where->inputs[i]);
        if (gather && match_.is_number(where->inputs[3 - i], 0.0))
          return {.gather = gather, .mask = where->inputs[0], .keeps_at = i == 1};
      }
    }
    return {};
  }

  // Whether the value is only read once, by the next node of the chain.
  bool is_private(ValueId value) const {
    if (readers_[value.index].size() != 1) return false;
    return std::none_of(graph_.outputs.begin(), graph_.outputs.end(),
                        [&](const NamedValue& output) { return output.value == value; });
  }

  const Match& match_;
  const Graph& graph_;
  const std::vector<std::vector<NodeId>>& readers_;
};

}  // namespace

Graph recognise_embedding_bag(const Graph& graph, PassContext& context) {
  const Match match(graph);
  const std::vector<std::vector<NodeId>> readers = readers_of(graph);
  const BagMatch bags(match, readers);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const Found found = bags.find(node);
    if (!found) return false;
    const Node& gather = graph.node(found.gather);
    const ValueId table = gather.inputs[0], ids = gather.inputs[1];
    const ValueId factor = found.weights ? found.weights : found.mask;
    std::vector<NodeId> others = match.interior(node.outputs[0], {table, ids, factor});
    if (!may_become_one(context, graph, id, others)) return false;
    // Takes the lookup's name: it owns the table, and errors about ids name it.
    std::erase(others, found.gather);
    others.push_back(id);
    to.scope_of(found.gather, others);

    GraphBuilder& g = to.builder();
    const DType dtype = graph.type(table).dtype;
    const Shape& ids_shape = graph.type(ids).shape;
    std::vector<ValueId> inputs{to.mapped(table), to.mapped(ids)};
    if (factor) {
      ValueId weights =
          g.reshape(to.mapped(factor), *bags.leading(factor, graph.type(table).rank() - 1));
      if (found.mask) {
        const ValueId one = g.scalar(1, dtype), zero = g.scalar(0, dtype);
        weights = g.add_node("Where",
                             {weights, found.keeps_at ? one : zero, found.keeps_at ? zero : one});
      }
      inputs.push_back(g.expand(weights, ids_shape));
    }
    ValueId y = g.add_node("EmbeddingBag", std::move(inputs));
    if (node.op->reducer == Reducer::mean && ids_shape.back() > 1) {
      y = g.div(y, g.scalar(static_cast<double>(ids_shape.back()), dtype));
    }
    to.replace(node.outputs[0], g.reshape(y, graph.type(node.outputs[0]).shape));
    context.notes.push_back(gather.path + ": EmbeddingBag");
    return true;
  });
}

}  // namespace tandem
