// y = the sum of x^2 over all elements, a float32 scalar: one part of the norm of all gradients.
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_sum_of_squares(const NodeView& node) {
  require_float(node, 0);
  return {{DType::float32, {}}};
}

Cost sum_of_squares_cost(const NodeView& node) {
  return {2.0 * static_cast<double>(node.input(0).elements()),
          static_cast<double>(node.input(0).bytes())};
}

}  // namespace

Operator sum_of_squares() {
  return {.name = "SumOfSquares",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = infer_sum_of_squares,
          .not_differentiable = "measures gradients for clipping",
          .cost = sum_of_squares_cost,
          .reducer = Reducer::sum_of_squares,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
