// Comparisons and logic: bool results, with numpy's broadcasting.
#include "engine/operators/elementwise.h"
#include "engine/operators/operators.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_equal(const NodeView& node) {
  require_same_dtype(node, 0, 1);
  return {{DType::boolean, broadcast_inputs(node, 0, 1)}};
}

std::vector<TensorType> infer_order(const NodeView& node) {
  require_number(node, 0);
  return infer_equal(node);
}

std::vector<TensorType> infer_logic(const NodeView& node) {
  require_dtype(node, 0, DType::boolean);
  return infer_equal(node);
}

Operator predicate(std::string name, ScalarFunction scalar,
                   std::vector<TensorType> (*infer)(const NodeView&)) {
  Operator op = binary_operator(std::move(name), scalar, infer, nullptr);
  op.not_differentiable = "bool";
  return op;
}

}  // namespace

Operator equal() { return predicate("Equal", ScalarFunction::equal, infer_equal); }
Operator less() { return predicate("Less", ScalarFunction::less, infer_order); }
Operator greater() { return predicate("Greater", ScalarFunction::greater, infer_order); }
Operator less_or_equal() {
  return predicate("LessOrEqual", ScalarFunction::less_or_equal, infer_order);
}
Operator greater_or_equal() {
  return predicate("GreaterOrEqual", ScalarFunction::greater_or_equal, infer_order);
}
Operator logical_and() { return predicate("And", ScalarFunction::logical_and, infer_logic); }
Operator logical_or() { return predicate("Or", ScalarFunction::logical_or, infer_logic); }
Operator logical_xor() { return predicate("Xor", ScalarFunction::logical_xor, infer_logic); }

}  // namespace tandem::operators
