// y = the sum of x^2 over all elements, a float32 scalar: one part of the norm of all gradients.
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) {
  require_float(node, 0);
  return {{DType::float32, {}}};
}

Cost cost(const NodeView& node) {
  return {2.0 * static_cast<double>(node.input(0).elements()),
          static_cast<double>(node.input(0).bytes())};
}

}  // namespace

Operator sum_of_squares() {
  Operator op;
  op.name = "SumOfSquares";
  op.inputs = {{"x"}};
  op.outputs = {{"y"}};
  op.infer = infer;
  op.not_differentiable = "measures gradients for clipping";
  op.cost = cost;
  op.reducer = Reducer::sum_of_squares;
  op.precision = Precision::float32;
  op.engine_only = true;
  return op;
}

}  // namespace tandem::operators
