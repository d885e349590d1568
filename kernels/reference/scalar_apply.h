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

inline bool is_predicate(ScalarFunction f) {
  return (f >= ScalarFunction::equal && f <= ScalarFunction::logical_xor) ||
         f == ScalarFunction::logical_not;
}

/// f with a bool result, of one or two operands.
template <class T>
bool apply_predicate(ScalarFunction f, T a, T b) {
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

/// f of one or two operands of one type, with a result of that type. Not for Cast and Where.
template <class T>
T apply(ScalarFunction f, const Settings& s, T a, T b = T()) {
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
    default:
      break;
  }
  if constexpr (floating<T>) {
    switch (f) {
      case ScalarFunction::exp:
        return scalar::exp(a);
      case ScalarFunction::log:
        return scalar::log(a);
      case ScalarFunction::sqrt:
        return scalar::sqrt(a);
      case ScalarFunction::reciprocal:
        return reciprocal(a);
      case ScalarFunction::erf:
        return scalar::erf(a);
      case ScalarFunction::tanh:
        return scalar::tanh(a);
      case ScalarFunction::sigmoid:
        return sigmoid(a);
      case ScalarFunction::softplus:
        return softplus(a);
      case ScalarFunction::leaky_relu:
        return leaky_relu(a, T(s.alpha));
      case ScalarFunction::gelu:
        return s.tanh_form ? gelu_tanh(a) : gelu(a);
      case ScalarFunction::relu_grad:
        return relu_grad(a, b);
      case ScalarFunction::leaky_relu_grad:
        return leaky_relu_grad(a, b, T(s.alpha));
      case ScalarFunction::clip_grad:
        return clip_grad(a, b, T(s.low), T(s.high));
      case ScalarFunction::gelu_grad:
        return s.tanh_form ? gelu_tanh_grad(a, b) : gelu_grad(a, b);
      case ScalarFunction::tanh_grad:
        return tanh_grad(a, b);
      case ScalarFunction::sigmoid_grad:
        return sigmoid_grad(a, b);
      default:
        break;
    }
  }
  assert(false && "no such function of this element type");
  return a;
}

}  // namespace tandem::scalar
