#include "engine/training/ranks/shard_products.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/shard_parts.h"
#include "engine/operators/product_weights.h"
#include "engine/training/ranks/split_axes.h"
#include "engine/training/ranks/split_cross_entropy.h"

namespace tandem {
namespace {

std::string_view word_of(Sharding sharding) {
  return sharding == Sharding::rows ? "rows" : "columns";
}

[[noreturn]] void refuse(const State& state, Sharding sharding, const std::string& why,
                         std::string fix) {
  const std::string word(word_of(sharding));
  Diagnostic d;
  d.path = state.path.empty() ? state.name : state.path;
  d.message = "its " + word + " cannot be shared out: " + why;
  d.expected = "a matrix that products alone read, as their right operand";
  d.got = to_string(state.start.type());
  d.fix = std::move(fix);
  throw Error(ErrorKind::usage, std::move(d));
}

/// How a matrix is shared out; nothing where it is whole, or a table.
std::optional<Sharding> sharding_of(const Graph& graph, const State& state,
                                    const Shardings& shards) {
  const auto found = shards.find(state.name);
  if (found == shards.end() || found->second == Sharding::state || state.shard) return std::nullopt;
  if (found->second == Sharding::rows && !product_weight_obstacle(graph, state.initial).empty())
    return std::nullopt;
  return found->second;
}

void check(const Graph& graph, const State& state, Sharding sharding, int ranks) {
  const std::string fix = "take `shard = \"" + std::string(word_of(sharding)) + "\"` away from it";
  if (!(state.final == state.initial)) refuse(state, sharding, "the model changes it itself", fix);
  const bool is_read = !readers_of(graph)[state.initial.index].empty();
  const std::string obstacle = product_weight_obstacle(graph, state.initial);
  if (is_read && !obstacle.empty()) refuse(state, sharding, obstacle, fix);
  const Shape& shape = state.start.shape();
  const std::size_t axis = sharding == Sharding::rows ? 0 : 1;
  if (shape.size() != 2 || block_of(shape[axis], ranks - 1, ranks).filled < 1)
    refuse(state, sharding, "some of " + std::to_string(ranks) + " ranks would have none",
           "start fewer ranks, or " + fix);
}

class ShardProducts {
 public:
  /// `from` has blocks as the starts of the states in `axes` (by value: the axis that is shared
  /// out), and the types of wholes everywhere else.
  ShardProducts(const Graph& from, const OperatorSet& operators, const RankShares& ranks,
                std::map<std::int32_t, std::size_t> axes)
      : from_(from),
        ranks_(ranks),
        axes_(std::move(axes)),
        uniform_(uniform_values(from)),
        to_(from, operators),
        g_(to_.builder()),
        exchange_(g_, ranks_) {}

  Graph run() {
    for (std::size_t n = 0; n < from_.nodes.size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      if (!to_.is_live(id)) continue;
      to_.scope_of(id);
      if (!replaces(id)) copy(id);
    }
    for (const NamedValue& output : from_.outputs) own(output.value);
    for (const State& state : from_.states) own(state.final);
    return to_.finish();
  }

 private:
  using Inputs = std::vector<ValueId>;

  /// What stands for it once something wants it whole.
  struct Waiting {
    NodeId node;
    SplitValue logits;  // LogSoftmax of them, in the shape of the value
  };

  const TensorType& type(ValueId old) const { return from_.type(old); }
  const SplitValue* split(ValueId old) const {
    const auto found = splits_.find(old.index);
    return old && found != splits_.end() ? &found->second : nullptr;
  }
  bool is_uniform(ValueId old) const { return uniform_[static_cast<std::size_t>(old.index)]; }

  // The value of the own samples.
  ValueId own(ValueId old) {
    if (!old) return {};
    if (const auto found = waiting_.find(old.index); found != waiting_.end()) {
      const NodeId node = found->second.node;
      waiting_.erase(found);
      copy(node);
    } else if (const SplitValue* value = split(old); value != nullptr && !joined_[old.index]) {
      joined_[old.index] = true;
      to_.scope_of(from_.value(old).producer);
      to_.replace(old, exchange_.joined(*value, type(old).shape[0]));
    }
    return to_.mapped(old);
  }

  void copy(NodeId id) {
    const GraphBuilder::Scope scope = g_.scope();
    for (const ValueId input : from_.node(id).inputs) own(input);
    to_.copy(id);
    g_.set_scope(scope);
  }

  ValueId gathered(ValueId old) {
    ValueId& known = gathered_[old.index];
    if (!known) known = exchange_.gathered(in_scope_of_producer(old));
    return known;
  }

  ValueId entered(ValueId old, std::size_t axis) {
    ValueId& known = entered_[{old.index, axis}];
    if (!known) known = exchange_.split(in_scope_of_producer(old), axis).value;
    return known;
  }

  // `own` may have changed the scope.
  ValueId in_scope_of_producer(ValueId old) {
    const GraphBuilder::Scope scope = g_.scope();
    const ValueId value = own(old);
    g_.set_scope(scope);
    return value;
  }

  bool replaces(NodeId id) {
    const Node& node = from_.node(id);
    if (!node.inputs.empty() && axes_.contains(node.inputs[0].index)) {  // a Transpose
      to_.replace(node.outputs[0], g_.transpose(to_.mapped(node.inputs[0]), Ints{1, 0}));
      return true;
    }
    if (const ProductWeight weight = product_weight(from_, node); weight.matrix) {
      if (const auto found = axes_.find(weight.matrix.index); found != axes_.end()) {
        if ((found->second == 1) != weight.transposed)
          multiply_columns(node);
        else
          multiply_rows(node);
        return true;
      }
    }
    return reads_logits(id) || stays_split(id);
  }

  void multiply_columns(const Node& node) {
    const ValueId x = gathered(node.inputs[0]);
    const ValueId y = g_.matmul(x, to_.mapped(node.inputs[1]));
    const Shape& whole = type(node.outputs[0]).shape;
    splits_[node.outputs[0].index] = {y, whole.size() - 1, whole.back()};
  }

  void multiply_rows(const Node& node) {
    const Shape& whole = type(node.inputs[0]).shape;
    const std::size_t last = whole.size() - 1;
    const SplitValue* known = split(node.inputs[0]);
    const bool fits = known != nullptr && known->axis == last;
    ValueId x = fits ? known->value : entered(node.inputs[0], last);
    // Padding of activations need not be zeros.
    x = exchange_.filled(x, last, whole.back());
    const ValueId rows = exchange_.filled(to_.mapped(node.inputs[1]), 0, whole.back());
    to_.replace(node.outputs[0], exchange_.summed(g_.matmul(x, rows), whole[0]));
  }

  void keep(const Node& node, Inputs inputs, std::size_t axis, std::int64_t extent,
            const Attributes& attributes) {
    const ValueId y = g_.add_node(node.op->name, std::move(inputs), attributes);
    splits_[node.outputs[0].index] = {y, axis, extent};
  }

  // Cross-entropy, and what may become a part of one.
  bool reads_logits(NodeId id) {
    const Node& node = from_.node(id);
    if (node.inputs.empty()) return false;
    const ValueId x = node.inputs[0];
    const std::string& op = node.op->name;
    const auto found = waiting_.find(x.index);
    if (const SplitValue* logits = split(x); logits != nullptr) {
      if (op == "SoftmaxCrossEntropy" && type(x).rank() == 2) {
        lose(node, *logits, node.attributes.number("label_smoothing"));
        return true;
      }
      const auto axis = static_cast<std::int64_t>(logits->axis);
      if (op != "LogSoftmax" || node.attributes.integer("axis") != axis) return false;
      waiting_[node.outputs[0].index] = {id, *logits};
      return true;
    }
    if (found == waiting_.end()) return false;
    const SplitValue logits = found->second.logits;
    if (op == "NegativeLogLikelihood" && type(x).rank() == 2) {
      lose(node, logits, 0);
      return true;
    }
    if (node.op->role != Role::reshape) return false;
    if (const auto reshaped = behind_reshape(node, logits)) {
      waiting_[node.outputs[0].index] = {id, *reshaped};
      return true;
    }
    return false;
  }

  void lose(const Node& node, const SplitValue& logits, double smoothing) {
    const GraphBuilder::Scope scope = g_.scope();
    SplitLogits of{logits, own(node.inputs[1]), {}, smoothing};
    if (node.inputs.size() > 2) of.weights = own(node.inputs[2]);
    g_.set_scope(scope);
    const SplitLosses made = split_cross_entropy(g_, exchange_, ranks_, of);
    to_.replace(node.outputs[0], made.losses);
    if (node.outputs.size() > 1) to_.replace(node.outputs[1], made.log_sum_exp);
  }

  std::optional<SplitValue> behind_reshape(const Node& node, const SplitValue& x) {
    const Shape &from = type(node.inputs[0]).shape, &to = type(node.outputs[0]).shape;
    const auto axis = axis_behind_reshape(from, to, x.axis, ranks_.ranks);
    if (!axis || !exchange_.takes_rows(to[0])) return std::nullopt;
    Shape shape = to;
    shape[0] = exchange_.rows_of_all(to[0]);
    shape[*axis] = block_of(to[*axis], 0, ranks_.ranks).share;
    return SplitValue{g_.reshape(x.value, std::move(shape)), *axis, to[*axis]};
  }

  bool stays_split(NodeId id) {
    const Node& node = from_.node(id);
    const SplitValue* x = nullptr;
    for (const ValueId input : node.inputs) {
      if (x == nullptr) x = split(input);
    }
    if (x == nullptr || node.op->random) return false;
    if (node.op->is_scalar()) return stays_elementwise(node, *x);
    if (node.op->name == "Attention") return stays_by_heads(node);
    if (node.op->role == Role::product) return stays_by_batches(node);
    if (split(node.inputs[0]) != x) return false;
    if (node.op->role == Role::reshape) {
      const std::optional<SplitValue> y = behind_reshape(node, *x);
      if (y) splits_[node.outputs[0].index] = *y;
      return y.has_value();
    }
    if (node.op->role == Role::transpose) {
      const auto axis = axis_behind_transpose(node.attributes.integers("perm"), x->axis);
      if (axis) keep(node, {x->value}, *axis, x->extent, node.attributes);
      return axis.has_value();
    }
    if (node.op->name == "Softmax" || node.op->name == "LogSoftmax") {
      const std::int64_t axis = node.attributes.integer("axis");
      if (axis == 0 || axis == static_cast<std::int64_t>(x->axis)) return false;
      keep(node, {x->value}, x->axis, x->extent, node.attributes);
      return true;
    }
    return false;
  }

  // The block of a value that is the same on all ranks and broadcasts to `whole`, which is split
  // along `axis`; nothing where it has something for each row of axis 0.
  std::optional<ValueId> block_for(ValueId old, const Shape& whole, std::size_t axis) {
    const Shape& shape = type(old).shape;
    const std::size_t missing = whole.size() - shape.size();
    if (!is_uniform(old) || (missing == 0 && shape[0] != 1)) return std::nullopt;
    if (axis < missing || shape[axis - missing] == 1) return to_.mapped(old);
    ValueId& known = blocks_[{old.index, axis - missing}];
    if (!known) known = exchange_.own_block(to_.mapped(old), axis - missing);
    return known;
  }

  bool stays_elementwise(const Node& node, const SplitValue& x) {
    const Shape& whole = type(node.outputs[0]).shape;
    Inputs inputs;
    for (const ValueId input : node.inputs) {
      if (const SplitValue* value = split(input)) {
        const bool fits = type(input).rank() == whole.size() && value->axis == x.axis &&
                          value->extent == x.extent && type(input).shape[0] == whole[0];
        if (!fits) return false;
        inputs.push_back(value->value);
      } else if (const auto block = block_for(input, whole, x.axis)) {
        inputs.push_back(*block);
      } else {
        return false;
      }
    }
    keep(node, std::move(inputs), x.axis, x.extent, node.attributes);
    return true;
  }

  /// Values that are split along the same one of their batch axes; their blocks.
  std::optional<Inputs> same_batches(const Node& node, std::size_t count) {
    const SplitValue* x = split(node.inputs[0]);
    if (x == nullptr) return std::nullopt;
    const Shape& shape = type(node.inputs[0]).shape;
    Inputs inputs;
    for (std::size_t i = 0; i < count; ++i) {
      const SplitValue* value = split(node.inputs[i]);
      const Shape& other = type(node.inputs[i]).shape;
      const bool fits = value != nullptr && value->axis == x->axis && value->extent == x->extent &&
                        other.size() == shape.size() && value->axis + 2 < shape.size() &&
                        other[0] == shape[0];
      if (!fits) return std::nullopt;
      inputs.push_back(value->value);
    }
    return inputs;
  }

  bool stays_by_batches(const Node& node) {
    std::optional<Inputs> inputs = same_batches(node, 2);
    if (!inputs) return false;
    const SplitValue x = *split(node.inputs[0]);
    keep(node, std::move(*inputs), x.axis, x.extent, node.attributes);
    return true;
  }

  bool stays_by_heads(const Node& node) {
    std::optional<Inputs> inputs = same_batches(node, 3);
    if (!inputs || split(node.inputs[0])->axis != 1) return false;
    const SplitValue x = *split(node.inputs[0]);
    if (node.inputs.size() > 3 && node.inputs[3]) {
      const std::optional<ValueId> mask = mask_for(node.inputs[3], type(node.inputs[0]).shape);
      if (!mask) return false;
      inputs->push_back(*mask);
    }
    keep(node, std::move(*inputs), 1, x.extent, node.attributes);
    return true;
  }

  std::optional<ValueId> mask_for(ValueId mask, const Shape& queries) {
    if (split(mask) != nullptr) return std::nullopt;
    if (is_uniform(mask)) return block_for(mask, queries, 1);
    const Shape& shape = type(mask).shape;
    if (shape.size() != 4 || shape[0] != queries[0]) return std::nullopt;
    return shape[1] == 1 ? gathered(mask) : entered(mask, 1);
  }

  const Graph& from_;
  const RankShares ranks_;
  const std::map<std::int32_t, std::size_t> axes_;
  const std::vector<bool> uniform_;
  GraphRewrite to_;
  GraphBuilder& g_;
  SampleExchange exchange_;
  // By value of the old graph, the last two with an axis.
  std::map<std::int32_t, SplitValue> splits_;
  std::map<std::int32_t, bool> joined_;
  std::map<std::int32_t, Waiting> waiting_;
  std::map<std::int32_t, ValueId> gathered_;
  std::map<std::pair<std::int32_t, std::size_t>, ValueId> entered_, blocks_;
};

}  // namespace

bool shards_products(const Graph& graph, const Shardings& shards) {
  for (const State& state : graph.states) {
    if (sharding_of(graph, state, shards)) return true;
  }
  return false;
}

Graph shard_products(const OperatorSet& operators, const Graph& graph, const Shardings& shards,
                     const RankShares& ranks) {
  if (!ranks.several() || !shards_products(graph, shards)) return graph;
  Graph from = remove_dead(graph, operators);
  std::map<std::int32_t, std::size_t> axes;
  std::vector<std::pair<std::size_t, std::size_t>> states;
  for (std::size_t s = 0; s < from.states.size(); ++s) {
    const State& state = from.states[s];
    const std::optional<Sharding> sharding = sharding_of(from, state, shards);
    if (!sharding) continue;
    check(from, state, *sharding, ranks.ranks);
    states.emplace_back(s, *sharding == Sharding::rows ? 0 : 1);
  }
  for (const auto& [s, axis] : states) {
    State& state = from.states[s];
    keep_part(state, ShardKind::blocks, ranks.rank, ranks.ranks, static_cast<std::int64_t>(axis));
    from.value(state.initial).type = state.start.type();
    axes.emplace(state.initial.index, axis);
  }
  return ShardProducts(from, operators, ranks, std::move(axes)).run();
}

}  // namespace tandem
