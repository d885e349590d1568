// What kernels/shared and the kernels' headers use of the standard library, for NVRTC, which has no
// headers of its own.
#pragma once

#if defined(__CUDACC_RTC__)

namespace std {

using size_t = decltype(sizeof(0));
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using uintptr_t = unsigned long;

template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <class T>
inline constexpr bool is_signed_v = T(-1) < T(0);

/// For integers only.
template <class T>
struct numeric_limits {
  static constexpr int digits = static_cast<int>(sizeof(T)) * 8 - (is_signed_v<T> ? 1 : 0);
  static __host__ __device__ constexpr T max() {
    return static_cast<T>((uint64_t(1) << (digits - 1)) - 1 + (uint64_t(1) << (digits - 1)));
  }
  static __host__ __device__ constexpr T min() {
    return is_signed_v<T> ? static_cast<T>(-max() - 1) : T(0);
  }
};

using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atanh;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::exp;
using ::expm1;
using ::fabs;
using ::floor;
using ::fmod;
using ::log;
using ::log1p;
using ::pow;
using ::rint;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;

}  // namespace std

#endif
