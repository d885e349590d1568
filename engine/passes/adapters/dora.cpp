// Weight-decomposed adapters (DoRA, Liu et al. 2024): a magnitude for each output of a weight,
// which trains next to the adapters.
//
// y_o = m_o / ||V_o|| (x V)_o + bias_o    V = W + scale A B, and V_o what output o multiplies by
//
// No gradient flows through ||V_o||, as in the publication (section 4.3) and in PEFT.
#include <cmath>

#include "engine/graph/rewrite.h"
#include "engine/passes/adapters/adapter_kind.h"

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

/// ||W_o||, since B starts at zero.
HostTensor weight_norms(const AdaptedWeight& weight, const HostTensor& w, const DrawUniform&) {
  const HostTensor from = w.converted(DType::float64);
  return HostTensor::from<double>({weight.outputs()}, norms_of(weight, from.as<double>()))
      .converted(w.dtype());
}

/// A vector of a Linear; of a convolution in the shape that its result is multiplied in.
HostTensor peft_magnitude(const AdaptedWeight& weight, const HostTensor& magnitude) {
  Shape shape(weight.type.shape.size(), 1);
  shape[1] = weight.outputs();
  return shape.size() == 2 ? magnitude : magnitude.reshaped(std::move(shape));
}

/// A B, in the weight's shape.
ValueId product_of_adapters(GraphBuilder& g, const AdaptedWeight& weight, ValueId a, ValueId b) {
  if (!weight.out_first) return g.matmul(a, b);
  const std::int64_t rank = weight.rule.rank;
  const ValueId product =
      g.matmul(g.reshape(b, {weight.outputs(), rank}), g.reshape(a, {rank, weight.fan_in()}));
  return g.reshape(product, weight.type.shape);
}

/// m_o / ||V_o||, in a shape that broadcasts to a product with the weight.
ValueId magnitude_factor(GraphBuilder& g, const AdapterValues& adapter) {
  const AdaptedWeight& weight = adapter.weight;
  const ValueId w = adapter.w, a = adapter.parts[0], b = adapter.parts[1], m = adapter.parts[2];
  const DType own = g.dtype(w);
  const DType sums = own == DType::float64 ? own : DType::float32;  // squares leave float16's range
  const ValueId change = g.cast(product_of_adapters(g, weight, a, b), sums);
  const ValueId v = g.add(g.cast(w, sums), g.mul(change, g.scalar(weight.rule.scale(), sums)));
  Ints inputs;  // axes that are summed over
  for (std::size_t axis = 0; axis < weight.type.shape.size(); ++axis) {
    if (axis != weight.out_axis()) inputs.push_back(static_cast<std::int64_t>(axis));
  }
  const ValueId norms = g.add_node("Sqrt", {g.reduce_sum(g.mul(v, v), inputs, false)});
  const ValueId factor = g.cast(g.div(g.cast(m, sums), g.add_node("StopGradient", {norms})), own);
  Shape shape(weight.type.shape.size() - 1, 1);  // [out], or [out, 1...] before spatial axes
  shape[0] = weight.outputs();
  return g.reshape(factor, shape);
}

/// f (x W + part) + bias, with f = m / ||V||. Only what is added to x W reads x through the
/// dropout, as in PEFT: x W + (f - 1) (dropout(x) W) + f part + bias.
void decompose(GraphRewrite& to, NodeId product, AdapterValues& adapter) {
  GraphBuilder& g = to.builder();
  const Node& node = to.from().node(product);
  to.scope_of(product);
  if (!adapter.shared) adapter.shared = magnitude_factor(g, adapter);
  const ValueId x = to.mapped(node.inputs[0]), w = to.mapped(node.inputs[1]), f = adapter.shared;
  const auto times_w = [&](ValueId of) {
    return g.add_node(node.op->name, {of, w}, node.attributes);
  };
  const ValueId read = dropped(g, x, adapter);
  const ValueId part = low_rank_product(g, node, read, adapter);
  const ValueId own = times_w(read);
  ValueId y = g.mul(f, g.add(own, part));
  if (!(read == x)) y = g.add(y, g.sub(times_w(x), own));
  if (node.inputs.size() > 2 && node.inputs[2])
    y = g.add(y, g.reshape(to.mapped(node.inputs[2]), g.shape(f)));
  to.replace(node.outputs[0], y);
}

/// Multiplies each V_o by m_o / ||V_o||.
void merge_decomposed(const AdaptedWeight& weight, std::span<double> w,
                      const std::vector<HostTensor>& parts) {
  lora().merge(weight, w, parts);
  const std::vector<double> norms = norms_of(weight, w);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::size_t output = output_of(weight, i);
    w[i] *= parts[2].number(static_cast<std::int64_t>(output)) / norms[output];
  }
}

}  // namespace

AdapterKind dora() {
  AdapterKind kind{.name = "dora",
                   .flag = &AdapterRule::dora,
                   .help =
                       "weight-decomposed adapters: the norm of each output's weights trains "
                       "as a number of its own, and the adapters change their direction",
                   .parts = lora().parts,
                   .add = decompose,
                   .merge = merge_decomposed,
                   .not_written =
                       "adapters with magnitudes (dora) scale the weight itself, which "
                       "nodes next to its product cannot do",
                   .peft_flag = "use_dora"};
  kind.parts.push_back({.name = "lora_magnitude",
                        .start = weight_norms,
                        .of_weight = "magnitudes (dora) start with the norms of a whole weight",
                        .peft_name = "lora_magnitude_vector",
                        .peft = peft_magnitude});
  return kind;
}

}  // namespace tandem
