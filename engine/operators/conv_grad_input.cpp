// dx[n, c, i] = sum over m and all (o, k) with i = o * stride - pad + k * dilation of
// dy[n, m, o] * weight[m, c, k]: Conv's gradient in x, also the transposed convolution.
#include "engine/graph/builder.h"
#include "engine/operators/convolution.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_conv_grad_input(const NodeView& view) {
  require_float(view, 0);
  require_dtype(view, 1, view.input(0).dtype);
  const Shape& x = view.attributes().integers("shape");
  require_shape(view, 0, convolution_shape(view, x, view.input(1).shape));
  return {{view.input(0).dtype, x}};
}

// Linear in dy and in weight, so its own gradient is Conv and ConvGradWeight.
Gradients conv_grad_input_gradient(GradientContext& c) {
  Gradients result(2);
  const ValueId ddx = c.dy[0];
  if (!ddx) return result;
  if (c.wanted[0]) {
    result[0] = c.g.add_node("Conv", {ddx, c.x(1)}, convolution_attributes_of(c.node));
  }
  if (c.wanted[1]) {
    const Shape shape = c.g.shape(c.x(1));
    result[1] =
        c.g.add_node("ConvGradWeight", {ddx, c.x(0)}, convolution_attributes_of(c.node, &shape));
  }
  return result;
}

Cost conv_grad_input_cost(const NodeView& view) {
  return {convolution_flops(view.input(0).shape, view.input(1).shape), operand_bytes(view)};
}

}  // namespace

Operator conv_grad_input() {
  return {.name = "ConvGradInput",
          .inputs = {{"dy"}, {"weight"}},
          .outputs = {{"dx"}},
          .attributes = convolution_attributes(true),
          .infer = infer_conv_grad_input,
          .gradient = conv_grad_input_gradient,
          .cost = conv_grad_input_cost,
          .precision = Precision::low};
}

}  // namespace tandem::operators
