// y = the determinant of each matrix x [..., n, n].
#include "engine/graph/builder.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

Shape checked_batch(const NodeView& node, const TensorType& x) {
  const std::size_t rank = x.rank();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2]) {
    node.fail("x has the wrong shape", "square matrices", to_string(x.shape));
  }
  return Shape(x.shape.begin(), x.shape.end() - 2);
}

double matrices(const TensorType& x) {
  const double n = static_cast<double>(x.shape.back());
  return n > 0 ? element_number(x) / (n * n) : 0;
}

std::vector<TensorType> infer_det(const NodeView& node) {
  require_float(node, 0);
  return {{node.input(0).dtype, checked_batch(node, node.input(0))}};
}

Gradients det_gradient(GradientContext& c) { return {c.g.add_node("DetGrad", {c.dy[0], c.x(0)})}; }

Cost det_cost(const NodeView& node) {
  const double n = static_cast<double>(node.input(0).shape.back());
  return {matrices(node.input(0)) * n * n * n, operand_bytes(node)};
}

std::vector<TensorType> infer_det_gradient(const NodeView& node) {
  require_float(node, 1);
  require_same_dtype(node, 0, 1);
  require_shape(node, 0, checked_batch(node, node.input(1)));
  return {node.input(1)};
}

Cost det_gradient_cost(const NodeView& node) {
  const double n = static_cast<double>(node.input(1).shape.back());
  return {matrices(node.input(1)) * n * n * n * n * n, operand_bytes(node)};
}

}  // namespace

Operator det() {
  return {.name = "Det",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = infer_det,
          .gradient = det_gradient,
          .cost = det_cost,
          .precision = Precision::float32};
}

// dx = dy times the cofactors, which are determinants of what is left without a row and a column;
// so it is right where x has no inverse.
Operator det_grad() {
  return {.name = "DetGrad",
          .inputs = {{"dy"}, {"x"}},
          .outputs = {{"dx"}},
          .infer = infer_det_gradient,
          .not_differentiable = no_second_gradient,
          .cost = det_gradient_cost,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
