#include "engine/train/sharding/shard_products.h"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/attention_weights.h"
#include "engine/operators/product_weights.h"
#include "engine/train/sharding/split_axes.h"
#include "engine/train/sharding/split_cross_entropy.h"
#include "engine/train/sharding/split_values.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_product(const State& state, Sharding sharding, const std::string& why,
                                 std::string fix) {
  const std::string word(name_of(sharding));
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "its " + word + " cannot be sharded over the ranks: " + why,
                         .path = state.path.empty() ? state.name : state.path,
                         .expected = "a matrix that only products read, as their right operand",
                         .got = to_string(state.shard ? state.shard->whole : state.start.type()),
                         .fix = std::move(fix)});
}

/// How a matrix is sharded; nothing where it is whole, or a table.
std::optional<Sharding> sharding_of(const Graph& graph, const State& state,
                                    const Shardings& shards) {
  const auto found = shards.find(state.name);
  if (found == shards.end() || state.shard) return std::nullopt;
  const Sharding sharding = found->second;
  if (keeps_parameter_whole(sharding) || sharding == Sharding::table) return std::nullopt;
  if (sharding == Sharding::rows && !product_weight_obstacle(graph, state.initial).empty())
    return std::nullopt;
  return sharding;
}

/// The axis along which a matrix is sharded. `all`: the graph with what no output needs, so that a
/// program that does not read the matrix shards it as those do that read it.
std::size_t axis_of(const Graph& graph, const Graph& all, const State& state, Sharding sharding,
                    int ranks) {
  if (sharding == Sharding::rows) return 0;
  if (sharding == Sharding::columns) return 1;
  if (readers_of(graph)[state.initial.index].empty()) {
    const AttentionWeight unread = attention_weight(all, all.find_state(state.name)->initial);
    return unread.obstacle.empty() ? unread.axis : 1;
  }
  const AttentionWeight weight = attention_weight(graph, state.initial);
  const std::string fix = "remove `shard = \"heads\"` from it";
  if (!weight.obstacle.empty()) refuse_product(state, sharding, weight.obstacle, fix);
  if (weight.heads % ranks != 0) {
    refuse_product(state, sharding,
                   std::to_string(ranks) + " ranks do not divide the " +
                       std::to_string(weight.heads) + " heads of " +
                       graph.node(weight.attention).path,
                   "start as many ranks as divide the heads, or " + fix);
  }
  return weight.axis;
}

void check(const Graph& graph, const State& state, Sharding sharding, std::size_t axis, int ranks) {
  const std::string fix = "remove `shard = \"" + std::string(name_of(sharding)) + "\"` from it";
  if (!(state.final == state.initial))
    refuse_product(state, sharding, "the model changes it itself", fix);
  const bool is_read = !readers_of(graph)[state.initial.index].empty();
  const std::string obstacle = product_weight_obstacle(graph, state.initial);
  if (is_read && !obstacle.empty()) refuse_product(state, sharding, obstacle, fix);
  const Shape& shape = state.start.shape();
  if (shape.size() != 2 || block_of(shape[axis], ranks - 1, ranks).filled < 1)
    refuse_product(state, sharding, "some of " + std::to_string(ranks) + " ranks would have none",
                   "start fewer ranks, or " + fix);
}

class ShardProducts {
 public:
  /// `axes`: the axes of the sharded matrices, by value.
  ShardProducts(const Graph& from, const OperatorSet& operators, const RankShares& ranks,
                std::map<std::int32_t, std::size_t> axes)
      : from_(from), ranks_(ranks), axes_(std::move(axes)), values_(from, operators, ranks) {}

  Graph run() {
    for (std::size_t n = 0; n < from_.nodes.size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      if (!values_.to().is_live(id)) continue;
      values_.to().scope_of(id);
      if (!replaces(id)) values_.copy(id);
    }
    return values_.finish();
  }
  /// Whether this attention, a node of the graph before, is computed by heads on their ranks.
  bool has_split(NodeId attention) const { return split_attentions_.contains(attention.index); }

 private:
  using Inputs = std::vector<ValueId>;

  GraphBuilder& g() { return values_.g(); }
  const Shape& shape(ValueId old) const { return from_.type(old).shape; }
  const SplitValue* split(ValueId old) const { return values_.split(old); }
  /// The matrix, or its transpose, that a product reads: this rank's block.
  ValueId block_of_matrix(const Node& product) { return values_.to().mapped(product.inputs[1]); }

  bool replaces(NodeId id) {
    const Node& node = from_.node(id);
    if (!node.inputs.empty() && axes_.contains(node.inputs[0].index)) {  // a Transpose
      values_.to().replace(node.outputs[0],
                           g().transpose(values_.to().mapped(node.inputs[0]), Ints{1, 0}));
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
    const ValueId x = values_.gathered(node.inputs[0]);
    const ValueId y = g().matmul(x, block_of_matrix(node));
    const Shape& whole = shape(node.outputs[0]);
    values_.set_split(node.outputs[0], {y, whole.size() - 1, whole.back()});
  }

  void multiply_rows(const Node& node) {
    const Shape& whole = shape(node.inputs[0]);
    const std::size_t last = whole.size() - 1;
    const SplitValue* known = split(node.inputs[0]);
    const bool fits = known != nullptr && known->axis == last;
    ValueId x = fits ? known->value : values_.entered(node.inputs[0], last);
    // Padding of activations need not be zeros.
    x = values_.exchange().filled(x, last, whole.back());
    const ValueId rows = values_.exchange().filled(block_of_matrix(node), 0, whole.back());
    values_.to().replace(node.outputs[0], values_.exchange().summed(g().matmul(x, rows), whole[0]));
  }

  void keep(const Node& node, Inputs inputs, std::size_t axis, std::int64_t extent) {
    const ValueId y = g().add_node(node.op->name, std::move(inputs), node.attributes);
    values_.set_split(node.outputs[0], {y, axis, extent});
  }

  // Cross-entropy, and what may become a part of one.
  bool reads_logits(NodeId id) {
    const Node& node = from_.node(id);
    if (node.inputs.empty()) return false;
    const ValueId x = node.inputs[0];
    const std::string& op = node.op->name;
    if (const SplitValue* logits = split(x); logits != nullptr) {
      if (op == "SoftmaxCrossEntropy" && shape(x).size() == 2) {
        lose(node, *logits, node.attributes.number("label_smoothing"));
        return true;
      }
      const auto axis = static_cast<std::int64_t>(logits->axis);
      if (op != "LogSoftmax" || node.attributes.integer("axis") != axis) return false;
      values_.set_waiting(node.outputs[0], id, *logits);
      return true;
    }
    if (values_.waiting(x) == nullptr) return false;
    const SplitValue logits = *values_.waiting(x);
    if (op == "NegativeLogLikelihood" && shape(x).size() == 2) {
      lose(node, logits, 0);
      return true;
    }
    if (node.op->role != Role::reshape) return false;
    if (const auto reshaped = behind_reshape(node, logits)) {
      values_.set_waiting(node.outputs[0], id, *reshaped);
      return true;
    }
    return false;
  }

  void lose(const Node& node, const SplitValue& logits, double smoothing) {
    SplitLogits of{logits, values_.own(node.inputs[1]), {}, smoothing};
    if (node.inputs.size() > 2) of.weights = values_.own(node.inputs[2]);
    const SplitLosses made = split_cross_entropy(g(), values_.exchange(), ranks_, of);
    values_.to().replace(node.outputs[0], made.losses);
    if (node.outputs.size() > 1) values_.to().replace(node.outputs[1], made.log_sum_exp);
  }

  std::optional<SplitValue> behind_reshape(const Node& node, const SplitValue& x) {
    const Shape &from = shape(node.inputs[0]), &to = shape(node.outputs[0]);
    const auto axis = axis_behind_reshape(from, to, x.axis, ranks_.ranks);
    if (!axis || !values_.exchange().takes_rows(to[0])) return std::nullopt;
    Shape blocks = to;
    blocks[0] = values_.exchange().rows_of_all(to[0]);
    blocks[*axis] = block_of(to[*axis], 0, ranks_.ranks).share;
    return SplitValue{g().reshape(x.value, std::move(blocks)), *axis, to[*axis]};
  }

  bool stays_split(NodeId id) {
    const Node& node = from_.node(id);
    const SplitValue* x = nullptr;
    for (const ValueId input : node.inputs) {
      if (x == nullptr) x = split(input);
    }
    if (x == nullptr || node.op->random) return false;
    if (node.op->is_scalar()) return stays_elementwise(node, *x);
    if (node.op->name == "Attention") {
      const bool stays = stays_by_heads(node);
      if (stays) split_attentions_.insert(id.index);
      return stays;
    }
    if (node.op->role == Role::product) return stays_by_batches(node);
    if (split(node.inputs[0]) != x) return false;
    if (node.op->role == Role::reshape) {
      const std::optional<SplitValue> y = behind_reshape(node, *x);
      if (y) values_.set_split(node.outputs[0], *y);
      return y.has_value();
    }
    if (node.op->role == Role::transpose) {
      const auto axis = axis_behind_transpose(node.attributes.integers("perm"), x->axis);
      if (axis) keep(node, {x->value}, *axis, x->extent);
      return axis.has_value();
    }
    if (node.op->name == "Softmax" || node.op->name == "LogSoftmax") {
      const std::int64_t axis = node.attributes.integer("axis");
      if (axis == 0 || axis == static_cast<std::int64_t>(x->axis)) return false;
      keep(node, {x->value}, x->axis, x->extent);
      return true;
    }
    return false;
  }

  bool stays_elementwise(const Node& node, const SplitValue& x) {
    const Shape& whole = shape(node.outputs[0]);
    Inputs inputs;
    for (const ValueId input : node.inputs) {
      if (const SplitValue* value = split(input)) {
        const bool fits = shape(input).size() == whole.size() && value->axis == x.axis &&
                          value->extent == x.extent && shape(input)[0] == whole[0];
        if (!fits) return false;
        inputs.push_back(value->value);
      } else if (const auto block = values_.block_for(input, whole, x.axis)) {
        inputs.push_back(*block);
      } else {
        return false;
      }
    }
    keep(node, std::move(inputs), x.axis, x.extent);
    return true;
  }

  /// Values that are split along the same one of their batch axes; their blocks.
  std::optional<Inputs> same_batches(const Node& node, std::size_t count) {
    const SplitValue* x = split(node.inputs[0]);
    if (x == nullptr) return std::nullopt;
    const Shape& first = shape(node.inputs[0]);
    Inputs inputs;
    for (std::size_t i = 0; i < count; ++i) {
      const SplitValue* value = split(node.inputs[i]);
      const Shape& other = shape(node.inputs[i]);
      const bool fits = value != nullptr && value->axis == x->axis && value->extent == x->extent &&
                        other.size() == first.size() && value->axis + 2 < first.size() &&
                        other[0] == first[0];
      if (!fits) return std::nullopt;
      inputs.push_back(value->value);
    }
    return inputs;
  }

  bool stays_by_batches(const Node& node) {
    std::optional<Inputs> inputs = same_batches(node, 2);
    if (!inputs) return false;
    const SplitValue x = *split(node.inputs[0]);
    keep(node, std::move(*inputs), x.axis, x.extent);
    return true;
  }

  bool stays_by_heads(const Node& node) {
    std::optional<Inputs> inputs = same_batches(node, 3);
    if (!inputs || split(node.inputs[0])->axis != 1) return false;
    const SplitValue x = *split(node.inputs[0]);
    if (node.inputs.size() > 3 && node.inputs[3]) {
      const std::optional<ValueId> mask = mask_for(node.inputs[3], shape(node.inputs[0]));
      if (!mask) return false;
      inputs->push_back(*mask);
    }
    keep(node, std::move(*inputs), 1, x.extent);
    return true;
  }

  std::optional<ValueId> mask_for(ValueId mask, const Shape& queries) {
    if (split(mask) != nullptr) return std::nullopt;
    if (values_.is_uniform(mask)) return values_.block_for(mask, queries, 1);
    const Shape& own = shape(mask);
    if (own.size() != 4 || own[0] != queries[0]) return std::nullopt;
    return own[1] == 1 ? values_.gathered(mask) : values_.entered(mask, 1);
  }

  const Graph& from_;
  const RankShares ranks_;
  const std::map<std::int32_t, std::size_t> axes_;
  std::set<std::int32_t> split_attentions_;
  SplitValues values_;
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
  std::vector<std::pair<std::size_t, NodeId>> by_heads;  // with the attention that reads it
  for (std::size_t s = 0; s < from.states.size(); ++s) {
    const State& state = from.states[s];
    const std::optional<Sharding> sharding = sharding_of(from, state, shards);
    if (!sharding) continue;
    const std::size_t axis = axis_of(from, graph, state, *sharding, ranks.ranks);
    check(from, state, *sharding, axis, ranks.ranks);
    states.emplace_back(s, axis);
    if (*sharding != Sharding::heads) continue;
    const NodeId attention = attention_weight(from, state.initial).attention;
    if (attention) by_heads.emplace_back(s, attention);
  }
  for (const auto& [s, axis] : states) {
    State& state = from.states[s];
    keep_part(state, axis == 0 ? ShardKind::row_blocks : ShardKind::column_blocks, ranks.rank,
              ranks.ranks);
    from.value(state.initial).type = state.start.type();
    axes.emplace(state.initial.index, axis);
  }
  ShardProducts products(from, operators, ranks, std::move(axes));
  Graph made = products.run();
  for (const auto& [s, attention] : by_heads) {
    if (products.has_split(attention)) continue;
    refuse_product(from.states[s], Sharding::heads,
                   from.node(attention).path +
                       " is computed with all heads: its queries, keys and values are not all "
                       "sharded by heads, or an operator in between mixes the heads",
                   "give the weights of all three `shard = \"heads\"`, or remove it from them");
  }
  return made;
}

}  // namespace tandem
