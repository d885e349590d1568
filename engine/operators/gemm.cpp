// y = activation(alpha a b + bias), or alpha a b where not (multiplier <= 0),
// else 0, for "ReluGrad"; made by lowering.
#include "engine/operators/activation.h"
#include "engine/operators/checks.h"
#include "engine/operators/matmul.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_gemm(const NodeView& node) {
  require_float(node, 0);
  require_same_dtype(node, 0, 1);
  const Shape shape = product_shape(node, 0, 1);
  if (node.has_input(2)) {
    require_same_dtype(node, 0, 2);
    if (shape.empty()) node.fail("a bias for a scalar product");
    require_shape(node, 2, {shape.back()});
  }
  const std::string& name = node.attributes().text("activation");
  const auto activation = parse_activation(name);
  if (!activation) node.fail("attribute 'activation'", "Relu, Gelu, GeluTanh or ReluGrad", name);
  if (node.has_input(3) != (activation == Activation::relu_grad)) {
    node.fail("a multiplier belongs to ReluGrad, and only to it");
  }
  if (node.has_input(3)) {
    require_same_dtype(node, 0, 3);
    require_shape(node, 3, shape);
  }
  return {{node.input(0).dtype, shape}};
}

Cost gemm_cost(const NodeView& node) { return product_cost(node, 0, 1); }

}  // namespace

Operator gemm() {
  return {.name = "Gemm",
          .inputs = {{"a"}, {"b"}, {"bias", true}, {"multiplier", true}},
          .outputs = {{"y"}},
          .attributes = {{"activation", std::string()}, {"alpha", 1.0}},
          .infer = infer_gemm,
          .not_differentiable = "made by lowering, after the gradient",
          .cost = gemm_cost,
          .engine_only = true};
}

}  // namespace tandem::operators
