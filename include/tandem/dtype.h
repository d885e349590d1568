// The element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::inline v1 {

/// The type of one element of a tensor. boolean: one byte, 0 or 1. 8-bit floats are stored, moved and converted, never
/// computed with; e8m0fnu: powers of two from 2^-127 to 2^127, and NaN.
// clang-format off
enum class DType : std::uint8_t {
  float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, boolean,
  float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu
};
// clang-format on

}  // namespace tandem::inline v1
namespace tandem::api::inline v1 {

using tandem::DType;
/// "float32", "bool", ...: the name that files, settings and messages use.
std::string_view name(DType dtype);

}  // namespace tandem::api::inline v1
