#include "engine/passes/dora.h"

#include <cmath>
#include <vector>

namespace tandem {
namespace {

/// The output that an element of a weight belongs to.
std::size_t output_of(const AdaptedWeight& weight, std::size_t element) {
  const auto outputs = static_cast<std::size_t>(weight.outputs());
  return weight.out_first ? element / static_cast<std::size_t>(weight.fan_in()) : element % outputs;
}

std::vector<double> norms_of(const AdaptedWeight& weight, std::span<const double> v) {
  std::vector<double> norms(static_cast<std::size_t>(weight.outputs()));
  for (std::size_t i = 0; i < v.size(); ++i) norms[output_of(weight, i)] += v[i] * v[i];
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

/// A B, in the weight's shape.
ValueId product_of_adapters(GraphBuilder& g, const AdaptedWeight& weight, ValueId a, ValueId b) {
  if (!weight.out_first) return g.matmul(a, b);
  const std::int64_t rank = weight.rule.rank;
  const ValueId product =
      g.matmul(g.reshape(b, {weight.outputs(), rank}), g.reshape(a, {rank, weight.fan_in()}));
  return g.reshape(product, weight.type.shape);
}

}  // namespace

HostTensor weight_norms(const AdaptedWeight& weight, const HostTensor& w) {
  const HostTensor from = w.converted(DType::float64);
  return HostTensor::from<double>({weight.outputs()}, norms_of(weight, from.as<double>()))
      .converted(w.dtype());
}

ValueId magnitude_factor(GraphBuilder& g, const AdaptedWeight& weight, ValueId w, ValueId a,
                         ValueId b, ValueId magnitude) {
  const DType own = g.dtype(w);
  const DType sums = own == DType::float64 ? own : DType::float32;  // squares leave float16's range
  const ValueId change = g.cast(product_of_adapters(g, weight, a, b), sums);
  const ValueId v = g.add(g.cast(w, sums), g.mul(change, g.scalar(weight.rule.scale(), sums)));
  Ints inputs;  // axes that are summed over
  for (std::size_t axis = 0; axis < weight.type.shape.size(); ++axis) {
    if (axis != weight.out_axis()) inputs.push_back(static_cast<std::int64_t>(axis));
  }
  const ValueId norms = g.add_node("Sqrt", {g.reduce_sum(g.mul(v, v), inputs, false)});
  const ValueId factor =
      g.cast(g.div(g.cast(magnitude, sums), g.add_node("StopGradient", {norms})), own);
  Shape shape(weight.type.shape.size() - 1, 1);  // [out], or [out, 1...] before spatial axes
  shape[0] = weight.outputs();
  return g.reshape(factor, shape);
}

void set_norms(const AdaptedWeight& weight, std::span<double> v, const HostTensor& magnitude) {
  const std::vector<double> norms = norms_of(weight, v);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t output = output_of(weight, i);
    v[i] *= magnitude.number(static_cast<std::int64_t>(output)) / norms[output];
  }
}

}  // namespace tandem
