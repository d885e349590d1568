// The number that a place of a packed matrix (engine/operators/packed/packing.h) stands for.
#pragma once

#include <cstdint>

#include "engine/graph/dtype_dispatch.h"
#include "engine/operators/packed/packing.h"
#include "kernels/shared/packed_code.h"

namespace tandem {

/// A packed matrix in memory.
struct PackedMatrix {
  Packing packing;
  PackedFormat format;
  const std::uint8_t* data = nullptr;
  const void* scales = nullptr;
  DType scale_type = DType::float32;
  const void* zeros = nullptr;  // null: packing.zero everywhere
  DType zero_type = DType::uint8;

  const void* row(std::int64_t r) const { return data + r * packing.row_bytes; }
};

/// The code at (r, c), with its sign where the format has one.
inline int packed_code(const PackedMatrix& matrix, std::int64_t r, std::int64_t c) {
  const CodeForm form{matrix.format.bits, matrix.format.is_signed, matrix.format.high_first};
  const int byte = matrix.data[r * matrix.packing.row_bytes + c / form.in_byte()];
  return form.code(byte, static_cast<int>(c % form.in_byte()));
}

/// A scale or zero point as a number of type T.
template <class T>
T packed_number(const void* numbers, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::float32:
      return static_cast<T>(static_cast<const float*>(numbers)[i]);
    case DType::float64:
      return static_cast<T>(static_cast<const double*>(numbers)[i]);
    case DType::float16:
      return static_cast<T>(static_cast<float>(static_cast<const Float16*>(numbers)[i]));
    case DType::bfloat16:
      return static_cast<T>(static_cast<float>(static_cast<const BFloat16*>(numbers)[i]));
    case DType::int8:
      return static_cast<T>(static_cast<const std::int8_t*>(numbers)[i]);
    default:
      return static_cast<T>(static_cast<const std::uint8_t*>(numbers)[i]);
  }
}

/// The number at (r, c), computed in T.
template <class T>
T unpacked(const PackedMatrix& matrix, std::int64_t r, std::int64_t c) {
  if (!matrix.format.has_codes()) return packed_number<T>(matrix.row(r), matrix.format.data, c);
  const std::int64_t at = matrix.packing.scale_at(r, c);
  const T scale = packed_number<T>(matrix.scales, matrix.scale_type, at);
  const int code = packed_code(matrix, r, c);
  if (matrix.format.has_table) {
    return static_cast<T>(packed_table(matrix.format.kind)[static_cast<std::size_t>(code)]) * scale;
  }
  const T zero = matrix.zeros != nullptr ? packed_number<T>(matrix.zeros, matrix.zero_type, at)
                                         : static_cast<T>(matrix.packing.zero);
  return (static_cast<T>(code) - zero) * scale;
}

}  // namespace tandem
