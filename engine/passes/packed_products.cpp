// Products and lookups read packed weights themselves, so that no weight is unpacked as a whole.
#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"
#include "engine/passes/pass.h"

namespace tandem {
namespace {

/// The Unpack that makes an operand, perhaps with a Transpose behind it.
struct Packed {
  NodeId node;
  bool transposed = false;
  std::vector<NodeId> between;
};

std::optional<Packed> packed_operand(const Match& match, ValueId operand) {
  Packed packed;
  if (const Node* transpose = match.is(operand, "Transpose")) {
    if (transpose->attributes.integers("perm") != Ints{1, 0}) return std::nullopt;
    packed.between.push_back(match.producer(operand));
    packed.transposed = true;
    operand = transpose->inputs[0];
  }
  const Node* unpack = match.is(operand, "Unpack");
  if (unpack == nullptr || match.graph().type(unpack->inputs[0]).rank() != 2) return std::nullopt;
  packed.node = match.producer(operand);
  packed.between.push_back(packed.node);
  return packed;
}

std::vector<ValueId> mapped_inputs(GraphRewrite& to, const Node& node) {
  std::vector<ValueId> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(input ? to.mapped(input) : ValueId{});
  return inputs;
}

bool replace_product(GraphRewrite& to, NodeId id, const Packed& packed) {
  const Graph& graph = to.from();
  const Node &product = graph.node(id), &unpack = graph.node(packed.node);
  to.scope_of(id, packed.between);
  std::vector<ValueId> inputs = mapped_inputs(to, unpack);
  inputs.insert(inputs.begin(), to.mapped(product.inputs[0]));
  Attributes attributes = unpack.attributes;
  attributes.set("transposed", std::int64_t{packed.transposed ? 1 : 0});
  to.replace(product.outputs[0],
             to.builder().add_node("PackedMatMul", std::move(inputs), std::move(attributes)));
  return true;
}

// The rows that are looked up, unpacked: rows have scales of their own, or share all.
bool replace_lookup(GraphRewrite& to, NodeId id, const Packed& packed) {
  const Graph& graph = to.from();
  const Node &lookup = graph.node(id), &unpack = graph.node(packed.node);
  const std::int64_t row_block = unpack.attributes.integer("row_block");
  const bool has_plain_rows = row_block == 1 && !packed.transposed;
  if (!has_plain_rows && (row_block != 0 || packed.transposed)) return false;
  to.scope_of(id, packed.between);
  std::vector<ValueId> inputs = mapped_inputs(to, unpack);
  const ValueId indices = to.mapped(lookup.inputs[1]);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] && (i == 0 || has_plain_rows))
      inputs[i] =
          to.builder().add_node("Gather", {inputs[i], indices}, {{"axis", std::int64_t{0}}});
  }
  to.replace(lookup.outputs[0],
             to.builder().add_node("Unpack", std::move(inputs), unpack.attributes));
  return true;
}

}  // namespace

Graph packed_products(const Graph& graph, PassContext& context) {
  const Match match(graph);
  return rewrite(graph, context.operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = graph.node(id);
    const bool is_product = node.op->name == "MatMul";
    const bool is_lookup = node.op->name == "Gather" && node.attributes.integer("axis") == 0 &&
                           node.attributes.text("to").empty();
    if (!is_product && !is_lookup) return false;
    const std::optional<Packed> packed = packed_operand(match, node.inputs[is_product ? 1 : 0]);
    if (!packed || !may_become_one(context, graph, id, packed->between)) return false;
    return is_product ? replace_product(to, id, *packed) : replace_lookup(to, id, *packed);
  });
}

}  // namespace tandem
