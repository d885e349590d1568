// y = activation(conv(x, weight) + bias + residual): what lowering makes of a convolution and its
// epilogue.
#include "engine/operators/activation.h"
#include "engine/operators/convolution.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& view) {
  require_float(view, 0);
  const DType dtype = view.input(0).dtype;
  require_dtype(view, 1, dtype);
  const Shape y = convolution_shape(view, view.input(0).shape, view.input(1).shape);
  if (view.has_input(2)) require_type(view, 2, {dtype, {y[1]}});
  if (view.has_input(3)) require_type(view, 3, {dtype, y});
  const std::string& name = view.attributes().text("activation");
  const auto activation = parse_activation(name);
  if (!activation || activation == Activation::relu_grad) {
    view.fail("activation is unknown", "\"\", \"Relu\", \"Gelu\" or \"GeluTanh\"", name);
  }
  return {{dtype, y}};
}

Cost cost(const NodeView& view) {
  return {convolution_flops(view.output(0).shape, view.input(1).shape), operand_bytes(view)};
}

}  // namespace

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
          .infer = infer,
          .not_differentiable = "it exists in lowered graphs only, after differentiation",
          .cost = cost,
          .engine_only = true};
}

}  // namespace tandem::operators
