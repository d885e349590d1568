// dweight[m, c, k] = sum over n, o of dy[n, m, o] * x[n, c, o * stride - pad + k * dilation]
#include "engine/graph/builder.h"
#include "engine/operators/convolution.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_conv_grad_weight(const NodeView& view) {
  require_float(view, 0);
  require_dtype(view, 1, view.input(0).dtype);
  const Shape& weight = view.attributes().integers("shape");
  require_shape(view, 1, convolution_shape(view, view.input(0).shape, weight));
  return {{view.input(0).dtype, weight}};
}

// Linear in x and in dy, so its own gradient is ConvGradInput and Conv.
Gradients conv_grad_weight_gradient(GradientContext& c) {
  Gradients result(2);
  const ValueId ddw = c.dy[0];
  if (!ddw) return result;
  if (c.wanted[0]) {
    const Shape shape = c.g.shape(c.x(0));
    result[0] =
        c.g.add_node("ConvGradInput", {c.x(1), ddw}, convolution_attributes_of(c.node, &shape));
  }
  if (c.wanted[1]) {
    result[1] = c.g.add_node("Conv", {c.x(0), ddw}, convolution_attributes_of(c.node));
  }
  return result;
}

Cost conv_grad_weight_cost(const NodeView& view) {
  return {convolution_flops(view.input(1).shape, view.output(0).shape), operand_bytes(view)};
}

}  // namespace

Operator conv_grad_weight() {
  return {.name = "ConvGradWeight",
          .inputs = {{"x"}, {"dy"}},
          .outputs = {{"dweight"}},
          .attributes = convolution_attributes(true),
          .infer = infer_conv_grad_weight,
          .gradient = conv_grad_weight_gradient,
          .cost = conv_grad_weight_cost,
          .precision = Precision::low,
          .engine_only = true};
}

}  // namespace tandem::operators
