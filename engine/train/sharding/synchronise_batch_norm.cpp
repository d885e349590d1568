#include "engine/train/sharding/synchronise_batch_norm.h"

#include "engine/graph/rewrite.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

// On rank r with n_r elements a channel, by sums over its own samples (Chan, Golub and LeVeque
// 1983):
//   m_r = sum(x) / n_r,  s_r = sum((x - m_r)^2)
// and over all ranks, which send each other these three in one exchange, in their order:
//   n = sum(n_r),  m = sum(n_r m_r) / n,  v = (sum(s_r) + sum(n_r (m_r - m)^2)) / n
//   f = scale / sqrt(v + epsilon),  y = (x - m_r) f + (m_r - m) f + bias
// Squares are of the differences to the own mean, so that a large mean costs no digits, and an
// error of m_r counts only by its square. Sums go over each sample first, then over samples: a
// float32 sum of all elements of a channel would lose a digit more than the kernel of one process
// does.
class Synchronised {
 public:
  Synchronised(GraphBuilder& g, const Node& node, std::vector<ValueId> inputs, int ranks)
      : g_(g), node_(node), inputs_(std::move(inputs)), ranks_(ranks) {
    const Shape& x = g.shape(inputs_[0]);
    channels_ = x[1];
    per_channel_ = Shape(x.size(), 1);
    per_channel_[1] = channels_;
    for (std::size_t i = 2; i < x.size(); ++i) of_sample_.push_back(static_cast<std::int64_t>(i));
    dtype_ = g.dtype(inputs_[0]);
  }

  /// y, new_mean, new_var, saved_mean, saved_rstd.
  std::vector<ValueId> build() {
    const auto own = static_cast<double>(g_.type(inputs_[0]).elements() / channels_);
    const ValueId own_mean = g_.div(summed(inputs_[0]), g_.scalar(own, dtype_));
    const ValueId centred = g_.sub(inputs_[0], wide(own_mean));
    const ValueId own_squares = summed(g_.mul(centred, centred));
    const ValueId told =
        g_.add_node("Concat",
                    {g_.reshape(own_mean, {1, channels_}), g_.reshape(own_squares, {1, channels_}),
                     g_.filled(own, {dtype_, {1, 1}})},
                    {{"axis", std::int64_t{1}}});
    const ValueId all = g_.add_node(all_gather_name, {told}, {{"ranks", std::int64_t{ranks_}}});
    const ValueId means = part(all, 0, channels_), squares = part(all, channels_, channels_),
                  counts = part(all, 2 * channels_, 1);
    const ValueId n = over_ranks(counts);
    const ValueId mean = g_.div(over_ranks(g_.mul(means, counts)), n);
    const ValueId apart = g_.sub(means, g_.reshape(mean, {1, channels_}));
    const ValueId between = over_ranks(g_.mul(g_.mul(apart, apart), counts));
    const ValueId variance = g_.div(g_.add(over_ranks(squares), between), n);
    const ValueId epsilon = g_.scalar(node_.attributes.number("epsilon"), dtype_);
    const ValueId rstd =
        g_.add_node("Reciprocal", {g_.add_node("Sqrt", {g_.add(variance, epsilon)})});
    const ValueId factor = g_.mul(rstd, g_.cast(inputs_[1], dtype_));
    const ValueId shift =
        g_.add(g_.mul(g_.sub(own_mean, mean), factor), g_.cast(inputs_[2], dtype_));
    const ValueId y = g_.add(g_.mul(centred, wide(factor)), wide(shift));
    return {y, moved(inputs_[3], mean), moved(inputs_[4], variance), mean, rstd};
  }

 private:
  /// The sum for each channel, over this rank's samples.
  ValueId summed(ValueId value) {
    if (!of_sample_.empty()) value = g_.reduce_sum(value, of_sample_, false);
    return g_.reduce_sum(value, {0}, false);
  }
  /// Columns of the values from all ranks, a row for each of them.
  ValueId part(ValueId value, std::int64_t start, std::int64_t size) {
    return g_.add_node("Slice", {value},
                       {{"starts", Ints{0, start}},
                        {"sizes", Ints{std::int64_t{ranks_}, size}},
                        {"steps", Ints{1, 1}}});
  }
  ValueId over_ranks(ValueId value) { return g_.reduce_sum(value, {0}, false); }
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
  Ints of_sample_;  // axes of one sample
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
