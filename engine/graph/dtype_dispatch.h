// The C++ types that store element types, and calls of a function with the type of a DType.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "engine/graph/half.h"
#include "engine/graph/host_device.h"
#include "engine/graph/types.h"

namespace tandem {

/// dtype_of<float>::value is DType::float32, and so on.
template <class T>
struct dtype_of;
// clang-format off
template <> struct dtype_of<float> : std::integral_constant<DType, DType::float32> {};
template <> struct dtype_of<double> : std::integral_constant<DType, DType::float64> {};
template <> struct dtype_of<Float16> : std::integral_constant<DType, DType::float16> {};
template <> struct dtype_of<BFloat16> : std::integral_constant<DType, DType::bfloat16> {};
template <> struct dtype_of<std::int8_t> : std::integral_constant<DType, DType::int8> {};
template <> struct dtype_of<std::int16_t> : std::integral_constant<DType, DType::int16> {};
template <> struct dtype_of<std::int32_t> : std::integral_constant<DType, DType::int32> {};
template <> struct dtype_of<std::int64_t> : std::integral_constant<DType, DType::int64> {};
template <> struct dtype_of<std::uint8_t> : std::integral_constant<DType, DType::uint8> {};
template <> struct dtype_of<std::uint16_t> : std::integral_constant<DType, DType::uint16> {};
template <> struct dtype_of<std::uint32_t> : std::integral_constant<DType, DType::uint32> {};
template <> struct dtype_of<std::uint64_t> : std::integral_constant<DType, DType::uint64> {};
template <> struct dtype_of<bool> : std::integral_constant<DType, DType::boolean> {};
// clang-format on

template <class... Ts>
struct TypeList {};
template <class... As, class... Bs>
constexpr TypeList<As..., Bs...> operator+(TypeList<As...>, TypeList<Bs...>) {
  return {};
}

inline constexpr TypeList<float, double> wide_floats;
inline constexpr TypeList<Float16, BFloat16> half_floats;
inline constexpr TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                          std::uint16_t, std::uint32_t, std::uint64_t>
    integer_types;
inline constexpr auto all_types = wide_floats + half_floats + integer_types + TypeList<bool>{};

/// Calls f with a value of the type of the list that stores `dtype`; of the list's last type where
/// none of them does.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class T, class... Rest, class F>
TANDEM_HOST_DEVICE constexpr decltype(auto) with_type(TypeList<T, Rest...>, DType dtype, F&& f) {
  if constexpr (sizeof...(Rest) > 0) {
    if (dtype != dtype_of<T>::value) return with_type(TypeList<Rest...>{}, dtype, f);
  }
  return f(T{});
}

/// Calls f with a value of the C++ type that stores `dtype`. 8-bit floats have none: their numbers
/// are those of float8.h, and their bytes move as std::uint8_t.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  assert(!is_float8(dtype) && "8-bit floats are converted before anything computes with them");
  return with_type(all_types, dtype, f);
}

}  // namespace tandem
