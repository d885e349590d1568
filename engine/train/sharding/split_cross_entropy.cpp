#include "engine/train/sharding/split_cross_entropy.h"

#include <numeric>
#include <utility>
#include <vector>

#include "engine/graph/shard_conversion.h"
#include "engine/operators/network_checks.h"

namespace tandem {
namespace {

class SplitCrossEntropy {
 public:
  SplitCrossEntropy(GraphBuilder& g, SampleExchange& exchange, const RankShares& ranks,
                    const SplitLogits& of)
      : g_(g),
        exchange_(exchange),
        of_(of),
        block_(block_of(of.logits.extent, ranks.rank, ranks.ranks)),
        dtype_(statistics_type(g.dtype(of.logits.value))),
        rows_(g.shape(of.labels)[0]) {}

  SplitLosses build() {
    const ValueId x =
        g_.cast(exchange_.filled(of_.logits.value, 1, of_.logits.extent), dtype_);  // [all, own]
    // `both` is [all, 2] for all rows; `of_ranks` for the own rows, from each rank, [ranks, rows,
    // 2].
    const ValueId both =
        g_.add_node("Concat", {log_sum_exp(x, 1), taken_away(x)}, {{"axis", std::int64_t{1}}});
    const ValueId of_ranks = exchange_.of_each_rank(both, rows_);
    const ValueId sums = column(of_ranks, 0), taken = column(of_ranks, 1);
    const ValueId sum = g_.reshape(log_sum_exp(sums, 0), {rows_});
    const ValueId loss = g_.sub(sum, g_.reshape(g_.reduce_sum(taken, {0}, false), {rows_}));
    const DType dtype = g_.dtype(of_.logits.value);
    return {g_.cast(weighted(loss), dtype), sum};
  }

 private:
  // top + log(sum(exp(x - top))): any number near the largest does for `top`, which is rounded up
  // so that no gradient flows through it.
  ValueId log_sum_exp(ValueId x, std::int64_t axis) {
    const ValueId largest =
        g_.add_node("ReduceMax", {x}, {{"axes", Ints{axis}}, {"keepdims", std::int64_t{1}}});
    const ValueId top = g_.add_node("Ceil", {largest});
    const ValueId exponentials = g_.add_node("Exp", {g_.sub(x, top)});
    return g_.add_node("Add",
                       {top, g_.add_node("Log", {g_.reduce_sum(exponentials, {axis}, true)})});
  }

  // (1 - s) * logit[label] where this rank has the label's class, + s / classes * the own logits.
  ValueId taken_away(ValueId x) {
    const ValueId all = exchange_.gathered(of_.labels);
    const ValueId labels = g_.reshape(all, {g_.shape(all)[0], 1});
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(block_.filled));
    std::iota(numbers.begin(), numbers.end(), block_.first);
    const ValueId classes = g_.constant(HostTensor::from<std::int64_t>({1, block_.filled}, numbers)
                                            .converted(g_.dtype(of_.labels)));
    const ValueId is_label = g_.add_node("Equal", {labels, classes});
    const ValueId at_label =
        g_.reduce_sum(g_.add_node("Where", {is_label, x, g_.scalar(0, dtype_)}), {1}, true);
    if (of_.smoothing == 0) return at_label;
    const double spread = of_.smoothing / static_cast<double>(of_.logits.extent);
    return g_.add(g_.mul(at_label, g_.scalar(1 - of_.smoothing, dtype_)),
                  g_.mul(g_.reduce_sum(x, {1}, true), g_.scalar(spread, dtype_)));
  }

  ValueId column(ValueId pairs, std::int64_t k) {
    const Shape& shape = g_.shape(pairs);
    return g_.add_node("Slice", {pairs},
                       {{"starts", Ints{0, 0, k}},
                        {"sizes", Ints{shape[0], shape[1], 1}},
                        {"steps", Ints{1, 1, 1}}});
  }

  // LabelWeights, which are all 1 here, checks only the labels that count.
  ValueId weighted(ValueId losses) {
    ValueId labels = of_.labels;
    if (of_.weights) {
      const ValueId counts_not =
          g_.add_node("Equal", {of_.weights, g_.scalar(0, g_.dtype(of_.weights))});
      labels = g_.add_node("Where", {counts_not, g_.scalar(0, g_.dtype(labels)), labels});
      losses = g_.mul(losses, g_.cast(of_.weights, dtype_));
    }
    const ValueId ones = g_.add_node("LabelWeights", {labels},
                                     {{"ignore_index", std::int64_t{0}},
                                      {"ignore", std::int64_t{0}},
                                      {"classes", of_.logits.extent}});
    return g_.mul(losses, g_.cast(ones, dtype_));
  }

  GraphBuilder& g_;
  SampleExchange& exchange_;
  const SplitLogits& of_;
  const Block block_;
  const DType dtype_;
  const std::int64_t rows_;
};

}  // namespace

SplitLosses split_cross_entropy(GraphBuilder& g, SampleExchange& exchange, const RankShares& ranks,
                                const SplitLogits& of) {
  return SplitCrossEntropy(g, exchange, ranks, of).build();
}

}  // namespace tandem
