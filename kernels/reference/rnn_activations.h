// The activations of recurrent layers (engine/operators/rnn_scan.h) and their slopes.
#pragma once

#include "engine/operators/rnn_scan.h"
#include "kernels/reference/scalar_apply.h"

namespace tandem::scalar {

template <class T>
T rnn_value(const RnnFunction& f, T x) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  if (f.activation == RnnActivation::affine) return alpha * x + beta;
  if (f.activation == RnnActivation::scaled_tanh) return alpha * std::tanh(beta * x);
  return apply(static_cast<ScalarFunction>(f.activation), {f.alpha, f.beta}, x);
}

template <class T>
T rnn_slope(const RnnFunction& f, T x) {
  const T alpha = static_cast<T>(f.alpha), beta = static_cast<T>(f.beta);
  if (f.activation == RnnActivation::affine) return alpha;
  if (f.activation == RnnActivation::scaled_tanh) return alpha * beta * tanh_slope(beta * x);
  switch (static_cast<ScalarFunction>(f.activation)) {
#define TANDEM_PREDICATE(...)
#define TANDEM_FUNCTION(function, ...)                            \
  case ScalarFunction::function:                                  \
    if constexpr (requires { function##_slope(x, alpha, beta); }) \
      return function##_slope(x, alpha, beta);                    \
    else if constexpr (requires { function##_slope(x, alpha); })  \
      return function##_slope(x, alpha);                          \
    else if constexpr (requires { function##_slope(x); })         \
      return function##_slope(x);                                 \
    break;
#include "engine/operators/scalar_functions.inl"
    default:
      break;
  }
  assert(false && "no slope of this function");
  return T(1);
}

}  // namespace tandem::scalar
