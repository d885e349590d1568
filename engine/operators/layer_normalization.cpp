// y = (x - mean) * rstd * scale + bias, where mean and rstd = 1 / sqrt(variance + epsilon) are
// taken over the axes from `axis` to the last, for each index of the axes before.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

/// [x.shape[0 .. axis), 1, ...] and [x.shape[axis ..]].
Shape statistics_shape(const Shape& x, std::int64_t axis) {
  Shape shape = x;
  std::fill(shape.begin() + axis, shape.end(), 1);
  return shape;
}
Shape normalized_shape(const Shape& x, std::int64_t axis) {
  return Shape(x.begin() + axis, x.end());
}

std::vector<TensorType> infer_layer_normalization(const NodeView& view) {
  require_float(view, 0);
  const TensorType& x = view.input(0);
  const std::int64_t axis = static_cast<std::int64_t>(checked_axis(view, view.input(0).rank()));
  const TensorType affine{x.dtype, normalized_shape(x.shape, axis)};
  require_type(view, 1, affine);
  if (view.has_input(2)) require_type(view, 2, affine);
  require_not_negative(view, "epsilon");
  const TensorType statistics{statistics_type(x.dtype), statistics_shape(x.shape, axis)};
  return {x, statistics, statistics};
}

/// dx of what reads mean and rstd themselves: (dmean - drstd rstd^3 (x - mean)) / n.
ValueId statistics_gradient(GradientContext& c) {
  GraphBuilder& g = c.g;
  const TensorType x = g.type(c.x(0)), means = g.type(c.y(1));
  const DType dtype = means.dtype;
  const auto rows = static_cast<double>(means.elements());
  const ValueId share = g.scalar(rows / static_cast<double>(x.elements()), dtype);
  ValueId sum;
  if (c.dy[2]) {
    const ValueId rstd = c.y(2), centred = g.sub(g.cast(c.x(0), dtype), c.y(1));
    const ValueId slope = g.mul(g.mul(g.mul(rstd, rstd), rstd), g.mul(c.dy[2], share));
    sum = g.neg(g.mul(centred, slope));
  }
  if (c.dy[1]) {
    const ValueId of_mean = g.mul(c.dy[1], share);
    sum = sum ? g.add(sum, of_mean) : g.expand(of_mean, x.shape);
  }
  return g.cast(sum, x.dtype);
}

Gradients layer_normalization_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (c.dy[0]) {
    const std::vector<ValueId> outputs =
        c.g.node("LayerNormalizationGrad", {c.dy[0], c.x(0), c.x(1), c.y(1), c.y(2)},
                 {{"axis", c.node.attributes.integer("axis")}});
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = outputs[i];
  }
  if (!c.dy[1] && !c.dy[2]) return dx;
  const ValueId more = statistics_gradient(c);
  dx[0] = dx[0] ? c.g.add(dx[0], more) : more;
  return dx;
}

std::vector<TensorType> infer_layer_normalization_grad(const NodeView& view) {
  require_float(view, 1);
  const TensorType& x = view.input(1);
  const std::int64_t axis = static_cast<std::int64_t>(checked_axis(view, view.input(1).rank()));
  const TensorType affine{x.dtype, normalized_shape(x.shape, axis)};
  const TensorType statistics{statistics_type(x.dtype), statistics_shape(x.shape, axis)};
  require_type(view, 0, x);
  require_type(view, 2, affine);
  require_type(view, 3, statistics);
  require_type(view, 4, statistics);
  return {x, affine, affine};
}

}  // namespace

Operator layer_normalization() {
  return {.name = "LayerNormalization",
          .inputs = {{"x"}, {"scale"}, {.name = "bias", .optional = true}},
          .outputs = {{"y"}, {"mean"}, {"rstd"}},
          .attributes = {{"axis", std::int64_t{0}, true}, {"epsilon", 1e-5}},
          .infer = infer_layer_normalization,
          .gradient = layer_normalization_gradient,
          .cost = cost_by_elements<8, 0>,
          .precision = Precision::float32};
}

// With n = (x - mean) * rstd, g = dy * scale and means over the normalised axes:
// dx = rstd * (g - mean(g) - n * mean(g * n)), dscale = sum(dy * n), dbias = sum(dy) over the axes
// before.
Operator layer_normalization_grad() {
  return {.name = "LayerNormalizationGrad",
          .inputs = {{"dy"}, {"x"}, {"scale"}, {"mean"}, {"rstd"}},
          .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
          .attributes = {{"axis", std::int64_t{0}, true}},
          .infer = infer_layer_normalization_grad,
          .not_differentiable = "second derivatives of LayerNormalization are not offered",
          .cost = cost_by_elements<14, 1>,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
