#include "engine/training/ranks/synchronise_batch_norm.h"

#include "engine/graph/rewrite.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

// With n elements a channel over all ranks, sums over them:
//   m = sum(x) / n,  v = sum((x - m)^2) / n,  r = 1 / sqrt(v + epsilon),  y = (x - m) * r * scale +
//   bias
// The variance is summed once the mean is known: x^2 would lose it where the mean is large.
class Synchronised {
 public:
  Synchronised(GraphBuilder& g, const Node& node, std::vector<ValueId> inputs, int ranks)
      : g_(g), node_(node), inputs_(std::move(inputs)), ranks_(ranks) {
    const Shape& x = g.shape(inputs_[0]);
    channels_ = x[1];
    per_channel_ = Shape(x.size(), 1);
    per_channel_[1] = channels_;
    axes_ = {0};
    for (std::size_t i = 2; i < x.size(); ++i) axes_.push_back(static_cast<std::int64_t>(i));
    dtype_ = g.dtype(inputs_[0]);
  }

  /// y, new_mean, new_var, saved_mean, saved_rstd.
  std::vector<ValueId> build() {
    const auto own = static_cast<double>(g_.type(inputs_[0]).elements() / channels_);
    const ValueId count = g_.filled(own, {dtype_, {1}});
    const ValueId first = summed(g_.add_node(
        "Concat", {g_.reduce_sum(inputs_[0], axes_, false), count}, {{"axis", std::int64_t{0}}}));
    const ValueId n = part(first, channels_, 1);
    const ValueId mean = g_.div(part(first, 0, channels_), n);
    const ValueId centred = g_.sub(inputs_[0], wide(mean));
    const ValueId squares = g_.reduce_sum(g_.mul(centred, centred), axes_, false);
    const ValueId variance = g_.div(summed(squares), n);
    const ValueId epsilon = g_.scalar(node_.attributes.number("epsilon"), dtype_);
    const ValueId rstd =
        g_.add_node("Reciprocal", {g_.add_node("Sqrt", {g_.add(variance, epsilon)})});
    const ValueId factor = g_.mul(rstd, g_.cast(inputs_[1], dtype_));
    const ValueId y = g_.add(g_.mul(centred, wide(factor)), wide(g_.cast(inputs_[2], dtype_)));
    return {y, moved(inputs_[3], mean), moved(inputs_[4], variance), mean, rstd};
  }

 private:
  ValueId summed(ValueId value) {
    return g_.add_node(all_reduce_name, {value}, {{"ranks", std::int64_t{ranks_}}});
  }
  ValueId part(ValueId value, std::int64_t start, std::int64_t size) {
    return g_.add_node("Slice", {value},
                       {{"starts", Ints{start}}, {"sizes", Ints{size}}, {"steps", Ints{1}}});
  }
  ValueId wide(ValueId value) { return g_.reshape(value, per_channel_); }
  /// momentum * running + (1 - momentum) * now, in place.
  ValueId moved(ValueId running, ValueId now) {
    const DType dtype = g_.dtype(running);
    const ValueId share = g_.scalar(1 - node_.attributes.number("momentum"), dtype);
    const ValueId step = g_.mul(g_.sub(g_.cast(now, dtype), running), share);
    return g_.add_node("Accumulate", {running, step}, {{"first", std::int64_t{0}}});
  }

  GraphBuilder& g_;
  const Node& node_;
  const std::vector<ValueId> inputs_;
  const int ranks_;
  std::int64_t channels_ = 0;
  Shape per_channel_;
  Ints axes_;
  DType dtype_ = DType::float32;
};

}  // namespace

Graph synchronise_batch_norm(const OperatorSet& operators, const Graph& forward, int ranks) {
  return rewrite(forward, operators, [&](GraphRewrite& to, NodeId id) {
    const Node& node = forward.node(id);
    if (node.op->name != "BatchNormalizationTraining") return false;
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(to.mapped(input));
    to.scope_of(id);
    const std::vector<ValueId> made =
        Synchronised(to.builder(), node, std::move(inputs), ranks).build();
    for (std::size_t i = 0; i < made.size(); ++i) to.replace(node.outputs[i], made[i]);
    return true;
  });
}

}  // namespace tandem
