#include "importer/batch/sample_totals.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "importer/file/onnx_content.h"

namespace tandem::importer {
namespace {

using Total = SampleTraits::Total;

/// The axes that a reduction takes away, and whether it adds up; nothing where the node is none.
struct Reduction {
  Total total = Total::none;
  std::vector<std::size_t> axes;
};

Reduction reduction_of(const Scope& scope, const onnx::NodeProto& node, std::size_t rank) {
  Reduction result;
  if (is_one_of(node, {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})) {
    const onnx::AttributeProto* reduction = find_attribute(node, "reduction");
    const std::string& kind = reduction == nullptr ? "mean" : reduction->s();
    if (kind == "none") return result;
    result.total = kind == "sum" ? Total::sum : Total::mean;
    for (std::size_t i = 0; i < rank; ++i) {
      if (i != 1) result.axes.push_back(i);  // classes
    }
    return result;
  }
  if (is_one_of(node, {"ReduceMean"})) {
    result.total = Total::mean;
  } else if (is_one_of(node, {"ReduceSum", "ReduceSumSquare", "ReduceL1"})) {
    result.total = Total::sum;
  } else {
    return result;
  }
  const Ints given = known_list(scope, node, "axes", 1);
  if (given.empty() && number_attribute(node, "noop_with_empty_axes", 0) == 0) {
    for (std::size_t i = 0; i < rank; ++i) result.axes.push_back(i);
  }
  for (const std::int64_t axis : given) {
    const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (at >= 0 && at < static_cast<std::int64_t>(rank))
      result.axes.push_back(static_cast<std::size_t>(at));
  }
  return result;
}

void set_total(SampleTraits& traits, Total total, Shape summed) {
  traits.total = total;
  traits.summed = std::make_shared<const Shape>(std::move(summed));
}

void pass_total(SampleTraits& traits, const SampleTraits& from) {
  traits.total = from.total;
  traits.summed = from.summed;
}

void follow_reduction(const Reduction& reduction, const Seen& x, SampleTraits& traits) {
  Shape taken, others;
  for (const std::size_t axis : reduction.axes) {
    const auto is_axis = [&](std::int64_t c) { return static_cast<std::size_t>(c) == axis; };
    const bool has_batch = std::any_of(x.changed.begin(), x.changed.end(), is_axis);
    (has_batch ? taken : others).push_back((*x.before)[axis]);
  }
  const SampleTraits& before = x.term->samples;
  if (taken.empty()) {
    if (before.total != Total::sum) return;
    if (reduction.total == Total::mean) return pass_total(traits, before);
    taken = *before.summed;
  }
  taken.insert(taken.end(), others.begin(), others.end());
  set_total(traits, reduction.total, std::move(taken));
}

}  // namespace

void follow_totals(const Scope& scope, const onnx::NodeProto& node,
                   const std::vector<Seen>& operands, const Seen& y, SampleTraits& traits) {
  if (operands.empty() || !operands[0].is_tensor) return;
  const Seen& x = operands[0];
  const Reduction reduction = reduction_of(scope, node, x.before->size());
  if (reduction.total != Total::none) return follow_reduction(reduction, x, traits);
  if (is_one_of(node, {"Einsum", "Gemm", "MatMul"})) {
    if (!y.is_unchanged()) return;
    // No axis of the result follows the batch: the samples were added up.
    for (const Seen& each : operands) {
      if (!each.has_changed()) continue;
      return set_total(traits, Total::sum,
                       {(*each.before)[static_cast<std::size_t>(each.changed[0])]});
    }
    return;
  }
  const bool is_function = is_one_of(node, {"Abs", "Exp", "Log", "Pow", "Relu", "Sigmoid",
                                            "Softplus", "Sqrt", "Tanh", "Transpose"});
  if (is_function && y.is_unchanged() && x.term->samples.total == Total::sum)
    return pass_total(traits, x.term->samples);
  const bool is_scaled = is_one_of(node, {"Div"}) && operands.size() == 2 &&
                         operands[1].is_tensor && operands[1].term->constant;
  if (!is_scaled && !is_one_of(node, {"Add", "Cast", "Clip", "Identity", "Max", "Mul", "Neg",
                                      "Reshape", "Squeeze", "Sub", "Sum", "Unsqueeze"}))
    return;
  for (const Seen& each : operands) {
    if (!each.is_tensor || each.term->samples.total == Total::none) continue;
    if (traits.total != Total::sum) pass_total(traits, each.term->samples);
  }
}

bool may_count_samples(const SampleTraits& total, bool divides, double number, std::int64_t batch) {
  const auto is = [&](double wanted) { return std::abs(number - wanted) <= 1e-6 * wanted; };
  // n - 1; a division by 1 counts nothing, and one by 0 is that of a single sample.
  const auto is_one_less = [&](double count) {
    return divides && (count > 2 ? is(count - 1) : count == 1 && std::abs(number) <= 1e-6);
  };
  const Shape& summed = *total.summed;
  const auto samples = static_cast<double>(summed[0]);
  if (total.total == Total::mean) {
    if (batch == 1 && (number == 1 || is_one_less(samples))) return true;
    return !divides && samples > 2 && (is(samples) || is(samples / (samples - 1)));
  }
  // The samples times some of the other extents.
  std::set<std::int64_t> products{summed[0]};
  for (std::size_t i = 1; i < summed.size(); ++i) {
    std::set<std::int64_t> more = products;
    for (const std::int64_t product : products) more.insert(product * summed[i]);
    products = std::move(more);
  }
  return std::any_of(products.begin(), products.end(), [&](std::int64_t product) {
    const auto count = static_cast<double>(product);
    return is(divides ? count : 1 / count) || is_one_less(count);
  });
}

}  // namespace tandem::importer
