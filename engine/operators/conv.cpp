// y[n, m, o] = bias[m] + sum over c, k of x[n, c, o * stride - pad + k * dilation] * weight[m, c,
// k]
#include "engine/graph/builder.h"
#include "engine/operators/activation.h"
#include "engine/operators/convolution.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_conv(const NodeView& view) {
  require_float(view, 0);
  const DType dtype = view.input(0).dtype;
  require_dtype(view, 1, dtype);
  const Shape y = convolution_shape(view, view.input(0).shape, view.input(1).shape);
  if (view.has_input(2)) require_type(view, 2, {dtype, {y[1]}});
  return {{dtype, y}};
}

// As Conv's, with a residual of y's type.
std::vector<TensorType> infer_conv_fused(const NodeView& view) {
  std::vector<TensorType> y = infer_conv(view);
  if (view.has_input(3)) require_type(view, 3, y[0]);
  const std::string& name = view.attributes().text("activation");
  const auto activation = parse_activation(name);
  if (!activation || activation == Activation::relu_grad) {
    view.fail("activation is unknown", "\"\", \"Relu\", \"Gelu\" or \"GeluTanh\"", name);
  }
  return y;
}

Gradients conv_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  const ValueId dy = c.dy[0];
  if (!dy) return dx;
  GraphBuilder& g = c.g;
  if (c.wanted[0]) {
    const Shape shape = g.shape(c.x(0));
    dx[0] = g.add_node("ConvGradInput", {dy, c.x(1)}, convolution_attributes_of(c.node, &shape));
  }
  if (c.wanted[1]) {
    const Shape shape = g.shape(c.x(1));
    dx[1] = g.add_node("ConvGradWeight", {c.x(0), dy}, convolution_attributes_of(c.node, &shape));
  }
  if (dx.size() > 2 && c.wanted[2]) {
    Ints axes{0};
    for (std::size_t i = 2; i < g.shape(dy).size(); ++i) axes.push_back(std::int64_t(i));
    dx[2] = g.reduce_sum(dy, axes, false);
  }
  return dx;
}

Cost conv_cost(const NodeView& view) {
  return {convolution_flops(view.output(0).shape, view.input(1).shape), operand_bytes(view)};
}

}  // namespace

Operator conv() {
  return {.name = "Conv",
          .role = Role::convolution,
          .inputs = {{"x"}, {"weight"}, {.name = "bias", .optional = true}},
          .outputs = {{"y"}},
          .attributes = convolution_attributes(false),
          .infer = infer_conv,
          .gradient = conv_gradient,
          .cost = conv_cost,
          .precision = Precision::low};
}

// y = activation(conv(x, weight) + bias + residual): what lowering makes of a convolution and its
// epilogue.
Operator conv_fused() {
  std::vector<AttributeSpec> attributes = convolution_attributes(false);
  attributes.push_back({"activation", std::string{}});
  return {.name = "ConvFused",
          .role = Role::fused_convolution,
          .inputs = {{"x"},
                     {"weight"},
                     {.name = "bias", .optional = true},
                     {.name = "residual", .optional = true}},
          .outputs = {{"y"}},
          .attributes = std::move(attributes),
          .infer = infer_conv_fused,
          .not_differentiable = "it exists in lowered graphs only, after differentiation",
          .cost = conv_cost,
          .engine_only = true};
}

}  // namespace tandem::operators
