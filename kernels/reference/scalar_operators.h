// The operators that compute a scalar function, as the lists of kernels go through them.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "engine/operators/operator.h"

namespace tandem {

/// The element types that a scalar function is computed in.
enum class ScalarTypes {
  numbers,   // every number; comparisons take bool as well
  floats,    // floating point only
  booleans,  // bool only
  own,       // not f(T, T): the kernel is written for this function alone
};

/// No default: a function that is missing here is a compiler warning.
constexpr ScalarTypes types_of(ScalarFunction f) {
  switch (f) {
    case ScalarFunction::neg:
    case ScalarFunction::abs:
    case ScalarFunction::sign:
    case ScalarFunction::relu:
    case ScalarFunction::clip:
    case ScalarFunction::add:
    case ScalarFunction::sub:
    case ScalarFunction::mul:
    case ScalarFunction::div:
    case ScalarFunction::maximum:
    case ScalarFunction::minimum:
    case ScalarFunction::equal:
    case ScalarFunction::less:
    case ScalarFunction::greater:
    case ScalarFunction::less_or_equal:
    case ScalarFunction::greater_or_equal:
      return ScalarTypes::numbers;
    case ScalarFunction::exp:
    case ScalarFunction::log:
    case ScalarFunction::sqrt:
    case ScalarFunction::reciprocal:
    case ScalarFunction::erf:
    case ScalarFunction::tanh:
    case ScalarFunction::sigmoid:
    case ScalarFunction::softplus:
    case ScalarFunction::leaky_relu:
    case ScalarFunction::gelu:
    case ScalarFunction::relu_grad:
    case ScalarFunction::leaky_relu_grad:
    case ScalarFunction::clip_grad:
    case ScalarFunction::gelu_grad:
    case ScalarFunction::tanh_grad:
    case ScalarFunction::sigmoid_grad:
      return ScalarTypes::floats;
    case ScalarFunction::logical_not:
    case ScalarFunction::logical_and:
    case ScalarFunction::logical_or:
    case ScalarFunction::logical_xor:
      return ScalarTypes::booleans;
    case ScalarFunction::none:
    case ScalarFunction::identity:
    case ScalarFunction::cast:
    case ScalarFunction::pow:
    case ScalarFunction::where:
      return ScalarTypes::own;
  }
  return ScalarTypes::own;
}

/// "LessOrEqual" -> "less_or_equal": what the kernels of an operator are called.
inline std::string kernel_name(std::string_view op) {
  std::string name;
  for (const char letter : op) {
    const auto character = static_cast<unsigned char>(letter);
    if (std::isupper(character) && !name.empty()) name += '_';
    name += static_cast<char>(std::tolower(character));
  }
  return name;
}

/// Calls f(operator) for each operator with a scalar function, in the order of all_operators().
template <class F>
void for_each_scalar_operator(F&& f) {
  const OperatorSet operators = all_operators();
  for (const Operator& op : operators.all()) {
    if (op.scalar != ScalarFunction::none) f(op);
  }
}

}  // namespace tandem
