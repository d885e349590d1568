// The element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem {

/// The type of one element of a tensor.
enum class DType : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,  // one byte, 0 or 1
  // 8-bit floats: stored, moved and converted, never computed with.
  float8_e4m3fn,
  float8_e4m3fnuz,
  float8_e5m2,
  float8_e5m2fnuz,
  float8_e8m0fnu,  // powers of two from 2^-127 to 2^127, and NaN
};

}  // namespace tandem

namespace tandem::api {
inline namespace v1 {

using tandem::DType;

/// "float32", "bool", ...: the name that files, settings and messages use.
std::string_view name(DType dtype);

}  // namespace v1
}  // namespace tandem::api
