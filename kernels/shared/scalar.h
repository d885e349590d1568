// The mathematics of all scalar functions, once, for g++, nvcc and NVRTC: plain functions of
// numbers. Integers wrap around, x / 0 is 0 for them, and casts to them truncate and saturate (NaN
// gives 0).
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#endif

#include "engine/graph/host_device.h"

namespace tandem::scalar {

template <class T>
inline constexpr bool floating = std::is_floating_point_v<T>;

// Limits of integers. As variables, since a GPU cannot call the functions of numeric_limits.
template <class T>
inline constexpr T lowest = std::numeric_limits<T>::min();
template <class T>
inline constexpr T highest = std::numeric_limits<T>::max();
template <class T>
inline constexpr int digits = std::numeric_limits<T>::digits;

// Integer arithmetic goes through 64 unsigned bits, where wrapping around is defined.
template <class T>
TANDEM_HOST_DEVICE inline std::uint64_t wide(T x) {
  return static_cast<std::uint64_t>(x);
}

template <class To, class From>
TANDEM_HOST_DEVICE inline To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (!floating<To> && floating<From>) {
    constexpr From one_past = static_cast<From>(To(1) << (digits<To> - 1)) * 2;
    if (x != x) return To(0);
    if (x >= one_past) return highest<To>;
    if (x <= static_cast<From>(lowest<To>)) return lowest<To>;
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// One operand

template <class T>
TANDEM_HOST_DEVICE inline T neg(T x) {
  if constexpr (floating<T>)
    return -x;
  else
    return static_cast<T>(0 - wide(x));
}

template <class T>
TANDEM_HOST_DEVICE inline T abs(T x) {
  if constexpr (floating<T>)
    return std::fabs(x);
  else
    return x < T(0) ? neg(x) : x;
}

// -1, 0 or 1; NaN stays NaN
template <class T>
TANDEM_HOST_DEVICE inline T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? static_cast<T>(-1) : x;
}

// Functions of the standard library. What NVRTC needs of them is in rtc_standard.h.
#define TANDEM_STANDARD(name)             \
  template <class T>                      \
  TANDEM_HOST_DEVICE inline T name(T x) { \
    return std::name(x);                  \
  }
TANDEM_STANDARD(exp)
TANDEM_STANDARD(expm1)
TANDEM_STANDARD(log)
TANDEM_STANDARD(log1p)
TANDEM_STANDARD(sqrt)
TANDEM_STANDARD(erf)
TANDEM_STANDARD(sin)
TANDEM_STANDARD(cos)
TANDEM_STANDARD(tan)
TANDEM_STANDARD(asin)
TANDEM_STANDARD(acos)
TANDEM_STANDARD(atan)
TANDEM_STANDARD(sinh)
TANDEM_STANDARD(cosh)
TANDEM_STANDARD(tanh)
TANDEM_STANDARD(asinh)
TANDEM_STANDARD(acosh)
TANDEM_STANDARD(atanh)
TANDEM_STANDARD(floor)
TANDEM_STANDARD(ceil)
#undef TANDEM_STANDARD

// To the nearest whole number, halves to even.
template <class T>
TANDEM_HOST_DEVICE inline T round(T x) {
  return std::rint(x);
}
template <class T>
TANDEM_HOST_DEVICE inline T reciprocal(T x) {
  return T(1) / x;
}
template <class T>
TANDEM_HOST_DEVICE inline T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
template <class T>
TANDEM_HOST_DEVICE inline T softplus(T x) {
  return (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::fabs(x)));
}

// NaN stays NaN, so that a diverging run is seen.
template <class T>
TANDEM_HOST_DEVICE inline T relu(T x) {
  return x < T(0) ? T(0) : x;
}
template <class T>
TANDEM_HOST_DEVICE inline T leaky_relu(T x, T alpha) {
  return x > T(0) ? x : alpha * x;
}

// min(max(x, low), high)
template <class T>
TANDEM_HOST_DEVICE inline T clip(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// min(max(alpha x + beta, 0), 1)
template <class T>
TANDEM_HOST_DEVICE inline T hard_sigmoid(T x, T alpha, T beta) {
  return clip(alpha * x + beta, T(0), T(1));
}
template <class T>
TANDEM_HOST_DEVICE inline T elu(T x, T alpha) {
  return x > T(0) ? x : alpha * std::expm1(x);
}

template <class T>
TANDEM_HOST_DEVICE inline T thresholded_relu(T x, T alpha) {
  return x <= alpha ? T(0) : x;
}
template <class T>
TANDEM_HOST_DEVICE inline T softsign(T x) {
  return x / (T(1) + std::fabs(x));
}

template <class T>
TANDEM_HOST_DEVICE inline bool is_nan(T x) {
  return x != x;
}
// `negative` and `positive`: whether that infinity counts.
template <class T>
TANDEM_HOST_DEVICE inline bool is_inf(T x, T negative, T positive) {
  return x + x == x && ((x > T(0) && positive != T(0)) || (x < T(0) && negative != T(0)));
}

inline constexpr double sqrt_half = 0.70710678118654752440;         // 1 / sqrt(2)
inline constexpr double sqrt_two_over_pi = 0.79788456080286535588;  // sqrt(2 / pi)
inline constexpr double inv_sqrt_two_pi = 0.39894228040143267794;   // 1 / sqrt(2 pi)
inline constexpr double gelu_cubic = 0.044715;

// x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2
template <class T>
TANDEM_HOST_DEVICE inline T gelu(T x) {
  return T(0.5) * x * (T(1) + std::erf(x * T(sqrt_half)));
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
template <class T>
TANDEM_HOST_DEVICE inline T gelu_tanh(T x) {
  const T inner = T(sqrt_two_over_pi) * (x + T(gelu_cubic) * x * x * x);
  return T(0.5) * x * (T(1) + std::tanh(inner));
}

/// `by_tanh` is 0 or 1: the place of the attribute's text among its choices.
template <class T>
TANDEM_HOST_DEVICE inline T gelu(T x, T by_tanh) {
  return by_tanh != T(0) ? gelu_tanh(x) : gelu(x);
}

template <class T>
TANDEM_HOST_DEVICE inline bool logical_not(T x) {
  return x == T(0);
}

// Two operands

template <class T>
TANDEM_HOST_DEVICE inline T add(T a, T b) {
  if constexpr (floating<T>)
    return a + b;
  else
    return static_cast<T>(wide(a) + wide(b));
}

template <class T>
TANDEM_HOST_DEVICE inline T sub(T a, T b) {
  if constexpr (floating<T>)
    return a - b;
  else
    return static_cast<T>(wide(a) - wide(b));
}

template <class T>
TANDEM_HOST_DEVICE inline T mul(T a, T b) {
  if constexpr (floating<T>)
    return a * b;
  else
    return static_cast<T>(wide(a) * wide(b));
}

template <class T>
TANDEM_HOST_DEVICE inline T div(T a, T b) {
  if constexpr (floating<T>) {
    return a / b;
  } else {
    if (b == T(0)) return T(0);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return neg(a);  // lowest / -1 wraps around
    return static_cast<T>(a / b);
  }
}

// The exponent may have a type of its own. Integer powers of integers are exact (and wrap around);
// negative ones truncate towards 0.
template <class T, class E>
TANDEM_HOST_DEVICE inline T pow(T x, E exponent) {
  if constexpr (floating<T>) {
    return std::pow(x, static_cast<T>(exponent));
  } else if constexpr (floating<E>) {
    return cast<T>(std::pow(static_cast<double>(x), static_cast<double>(exponent)));
  } else {
    if constexpr (std::is_signed_v<E>) {
      if (exponent < E(0)) {
        if (x == T(1)) return x;
        if (std::is_signed_v<T> && x == static_cast<T>(-1)) return exponent % 2 == 0 ? T(1) : x;
        return T(0);
      }
    }
    std::uint64_t result = 1, base = wide(x);
    for (std::uint64_t left = wide(exponent); left != 0; left >>= 1) {
      if (left & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  }
}

// x to the power 1/2, faster than pow. Unlike the square root it is infinity at -infinity and 0,
// not -0, at -0.
template <class T>
TANDEM_HOST_DEVICE inline T power_of_half(T x) {
  return x < T(0) && x + x == x ? -x : std::sqrt(x + T(0));
}

// The remainder of x / divisor, with the sign of the divisor or, where `of_dividend` is not 0, of
// x. Integers: 0 where the divisor is 0.
template <class T>
TANDEM_HOST_DEVICE inline T mod(T x, T divisor, T of_dividend) {
  if constexpr (floating<T>) {
    const T rest = std::fmod(x, divisor);
    if (of_dividend != T(0)) return rest;
    if (rest == T(0)) return std::copysign(T(0), divisor);
    return (rest < T(0)) != (divisor < T(0)) ? rest + divisor : rest;
  } else {
    if (divisor == T(0)) return T(0);
    if (std::is_signed_v<T> && divisor == static_cast<T>(-1)) return T(0);
    const T rest = static_cast<T>(x % divisor);
    const bool other_sign = rest != T(0) && (rest < T(0)) != (divisor < T(0));
    return other_sign && of_dividend == T(0) ? add(rest, divisor) : rest;
  }
}

template <class T>
TANDEM_HOST_DEVICE inline T shrink(T x, T bias, T border) {
  if (std::is_signed_v<T> && x < neg(border)) return add(x, bias);
  return x <= border ? T(0) : sub(x, bias);
}
template <class T>
TANDEM_HOST_DEVICE inline T prelu(T x, T slope) {
  return x > T(0) ? x : mul(slope, x);
}

// Bits of integers

template <class T>
TANDEM_HOST_DEVICE inline T bitwise_not(T x) {
  return static_cast<T>(~wide(x));
}
template <class T>
TANDEM_HOST_DEVICE inline T bitwise_and(T a, T b) {
  return static_cast<T>(wide(a) & wide(b));
}
template <class T>
TANDEM_HOST_DEVICE inline T bitwise_or(T a, T b) {
  return static_cast<T>(wide(a) | wide(b));
}
template <class T>
TANDEM_HOST_DEVICE inline T bitwise_xor(T a, T b) {
  return static_cast<T>(wide(a) ^ wide(b));
}
// To the left, or to the right where `right` is not 0. By less than 0 or by all bits: only what the
// sign leaves remains.
template <class T>
TANDEM_HOST_DEVICE inline T bit_shift(T x, T places, T right) {
  constexpr std::uint64_t bits = sizeof(T) * 8;
  if (wide(places) >= bits) return right != T(0) && x < T(0) ? static_cast<T>(-1) : T(0);
  return right != T(0) ? static_cast<T>(x >> places) : static_cast<T>(wide(x) << wide(places));
}

// NaN wins, as in numpy.
template <class T>
TANDEM_HOST_DEVICE inline T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
TANDEM_HOST_DEVICE inline T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class T>
TANDEM_HOST_DEVICE inline bool equal(T a, T b) {
  return a == b;
}
template <class T>
TANDEM_HOST_DEVICE inline bool less(T a, T b) {
  return a < b;
}
template <class T>
TANDEM_HOST_DEVICE inline bool greater(T a, T b) {
  return a > b;
}
template <class T>
TANDEM_HOST_DEVICE inline bool less_or_equal(T a, T b) {
  return a <= b;
}
template <class T>
TANDEM_HOST_DEVICE inline bool greater_or_equal(T a, T b) {
  return a >= b;
}

template <class T>
TANDEM_HOST_DEVICE inline bool logical_and(T a, T b) {
  return a != T(0) && b != T(0);
}
template <class T>
TANDEM_HOST_DEVICE inline bool logical_or(T a, T b) {
  return a != T(0) || b != T(0);
}
template <class T>
TANDEM_HOST_DEVICE inline bool logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}

// Gradients

// A NaN of y lets dy pass, as in PyTorch.
template <class T>
TANDEM_HOST_DEVICE inline T relu_grad(T dy, T y) {
  return y <= T(0) ? T(0) : dy;
}
template <class T>
TANDEM_HOST_DEVICE inline T leaky_relu_grad(T dy, T x, T alpha) {
  return x > T(0) ? dy : alpha * dy;
}
// Flat at its bounds, as PyTorch's clamp and hardtanh.
template <class T>
TANDEM_HOST_DEVICE inline T clip_grad(T dy, T x, T low, T high) {
  return x > low && x < high ? dy : T(0);
}

// d/dx x Phi(x) = Phi(x) + x phi(x)
template <class T>
TANDEM_HOST_DEVICE inline T gelu_grad(T dy, T x) {
  const T below = T(0.5) * (T(1) + std::erf(x * T(sqrt_half)));
  return dy * (below + x * T(inv_sqrt_two_pi) * std::exp(T(-0.5) * x * x));
}

template <class T>
TANDEM_HOST_DEVICE inline T gelu_tanh_grad(T dy, T x) {
  const T inner = T(sqrt_two_over_pi) * (x + T(gelu_cubic) * x * x * x);
  const T t = std::tanh(inner);
  const T slope = T(sqrt_two_over_pi) * (T(1) + T(3 * gelu_cubic) * x * x);
  return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
}

template <class T>
TANDEM_HOST_DEVICE inline T gelu_grad(T dy, T x, T by_tanh) {
  return by_tanh != T(0) ? gelu_tanh_grad(dy, x) : gelu_grad(dy, x);
}

template <class T>
TANDEM_HOST_DEVICE inline T tanh_grad(T dy, T y) {
  return dy * (T(1) - y * y);
}
template <class T>
TANDEM_HOST_DEVICE inline T sigmoid_grad(T dy, T y) {
  return dy * y * (T(1) - y);
}

// Slopes at x, of the activations of recurrent layers; 0 on a kink.
template <class T>
TANDEM_HOST_DEVICE inline T sigmoid_slope(T x) {
  return sigmoid_grad(T(1), sigmoid(x));
}
template <class T>
TANDEM_HOST_DEVICE inline T tanh_slope(T x) {
  return tanh_grad(T(1), T(std::tanh(x)));
}
template <class T>
TANDEM_HOST_DEVICE inline T softplus_slope(T x) {
  return sigmoid(x);
}
template <class T>
TANDEM_HOST_DEVICE inline T relu_slope(T x) {
  return relu_grad(T(1), x);
}
template <class T>
TANDEM_HOST_DEVICE inline T leaky_relu_slope(T x, T alpha) {
  return leaky_relu_grad(T(1), x, alpha);
}
template <class T>
TANDEM_HOST_DEVICE inline T thresholded_relu_slope(T x, T alpha) {
  return x <= alpha ? T(0) : T(1);
}
template <class T>
TANDEM_HOST_DEVICE inline T hard_sigmoid_slope(T x, T alpha, T beta) {
  const T line = alpha * x + beta;
  return line <= T(0) || line >= T(1) ? T(0) : alpha;
}
template <class T>
TANDEM_HOST_DEVICE inline T elu_slope(T x, T alpha) {
  return x > T(0) ? T(1) : alpha * std::exp(x);
}
template <class T>
TANDEM_HOST_DEVICE inline T softsign_slope(T x) {
  const T rest = T(1) / (T(1) + std::fabs(x));
  return rest * rest;
}

}  // namespace tandem::scalar
