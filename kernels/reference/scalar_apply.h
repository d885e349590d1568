// From an operator's ScalarFunction and attributes to the function of scalar.h.
#pragma once

#include <cassert>

#include "engine/operators/operator.h"
#include "kernels/shared/scalar.h"

namespace tandem::scalar {

/// The attributes that scalar functions have.
struct Settings {
  double alpha = 0;
  double low = 0, high = 0;  // of clip
  bool tanh_form = false;    // of gelu
};

inline Settings settings_of(const Node& node) {
  Settings settings;
  const Attributes& attributes = node.attributes;
  switch (node.op->scalar) {
    case ScalarFunction::leaky_relu:
    case ScalarFunction::leaky_relu_grad:
      settings.alpha = attributes.number("alpha");
      break;
    case ScalarFunction::clip:
    case ScalarFunction::clip_grad:
      settings.low = attributes.number("min");
      settings.high = attributes.number("max");
      break;
    case ScalarFunction::gelu:
    case ScalarFunction::gelu_grad:
      settings.tanh_form = attributes.text("approximate") == "tanh";
      break;
    default:
      break;
  }
  return settings;
}

/// Functions with a bool result whatever their operands are.
constexpr bool is_predicate(ScalarFunction f) {
  switch (f) {
    case ScalarFunction::logical_not:
    case ScalarFunction::logical_and:
    case ScalarFunction::logical_or:
    case ScalarFunction::logical_xor:
    case ScalarFunction::equal:
    case ScalarFunction::less:
    case ScalarFunction::greater:
    case ScalarFunction::less_or_equal:
    case ScalarFunction::greater_or_equal:
      return true;
    default:
      return false;
  }
}

/// f with a bool result, of one or two operands.
template <class T>
TANDEM_HOST_DEVICE bool apply_predicate(ScalarFunction f, T a, T b) {
  switch (f) {
    case ScalarFunction::logical_not:
      return a == T(0);
    case ScalarFunction::logical_and:
      return a != T(0) && b != T(0);
    case ScalarFunction::logical_or:
      return a != T(0) || b != T(0);
    case ScalarFunction::logical_xor:
      return (a != T(0)) != (b != T(0));
    case ScalarFunction::equal:
      return equal(a, b);
    case ScalarFunction::less:
      return less(a, b);
    case ScalarFunction::greater:
      return greater(a, b);
    case ScalarFunction::less_or_equal:
      return less_or_equal(a, b);
    case ScalarFunction::greater_or_equal:
      return greater_or_equal(a, b);
    default:
      assert(false && "not a predicate");
      return false;
  }
}

/// f of one or two operands of one type, with a result of that type. Not for predicates, Cast and
/// Where. No default: a function that is missing here is a compiler warning.
template <class T>
TANDEM_HOST_DEVICE T apply(ScalarFunction f, const Settings& s, T a, T b = T()) {
  switch (f) {
    case ScalarFunction::identity:
      return a;
    case ScalarFunction::neg:
      return neg(a);
    case ScalarFunction::abs:
      return abs(a);
    case ScalarFunction::sign:
      return sign(a);
    case ScalarFunction::relu:
      return relu(a);
    case ScalarFunction::clip:
      return clip(a, cast<T>(s.low), cast<T>(s.high));
    case ScalarFunction::add:
      return add(a, b);
    case ScalarFunction::sub:
      return sub(a, b);
    case ScalarFunction::mul:
      return mul(a, b);
    case ScalarFunction::div:
      return div(a, b);
    case ScalarFunction::pow:
      return pow(a, b);
    case ScalarFunction::maximum:
      return maximum(a, b);
    case ScalarFunction::minimum:
      return minimum(a, b);
    case ScalarFunction::exp:
      if constexpr (floating<T>) return scalar::exp(a);
      break;
    case ScalarFunction::log:
      if constexpr (floating<T>) return scalar::log(a);
      break;
    case ScalarFunction::sqrt:
      if constexpr (floating<T>) return scalar::sqrt(a);
      break;
    case ScalarFunction::reciprocal:
      if constexpr (floating<T>) return reciprocal(a);
      break;
    case ScalarFunction::erf:
      if constexpr (floating<T>) return scalar::erf(a);
      break;
    case ScalarFunction::tanh:
      if constexpr (floating<T>) return scalar::tanh(a);
      break;
    case ScalarFunction::sigmoid:
      if constexpr (floating<T>) return sigmoid(a);
      break;
    case ScalarFunction::softplus:
      if constexpr (floating<T>) return softplus(a);
      break;
    case ScalarFunction::leaky_relu:
      if constexpr (floating<T>) return leaky_relu(a, T(s.alpha));
      break;
    case ScalarFunction::gelu:
      if constexpr (floating<T>) return s.tanh_form ? gelu_tanh(a) : gelu(a);
      break;
    case ScalarFunction::relu_grad:
      if constexpr (floating<T>) return relu_grad(a, b);
      break;
    case ScalarFunction::leaky_relu_grad:
      if constexpr (floating<T>) return leaky_relu_grad(a, b, T(s.alpha));
      break;
    case ScalarFunction::clip_grad:
      if constexpr (floating<T>) return clip_grad(a, b, T(s.low), T(s.high));
      break;
    case ScalarFunction::gelu_grad:
      if constexpr (floating<T>) return s.tanh_form ? gelu_tanh_grad(a, b) : gelu_grad(a, b);
      break;
    case ScalarFunction::tanh_grad:
      if constexpr (floating<T>) return tanh_grad(a, b);
      break;
    case ScalarFunction::sigmoid_grad:
      if constexpr (floating<T>) return sigmoid_grad(a, b);
      break;
    case ScalarFunction::none:
    case ScalarFunction::cast:
    case ScalarFunction::where:
    case ScalarFunction::logical_not:
    case ScalarFunction::logical_and:
    case ScalarFunction::logical_or:
    case ScalarFunction::logical_xor:
    case ScalarFunction::equal:
    case ScalarFunction::less:
    case ScalarFunction::greater:
    case ScalarFunction::less_or_equal:
    case ScalarFunction::greater_or_equal:
      break;
  }
  assert(false && "no such function of this element type");
  return a;
}

}  // namespace tandem::scalar
