// How weights of few bits lie in memory, and which number each stands for.
//
// A packed matrix is a tensor of bytes [rows, row_bytes], of which each row holds `columns` codes
// one after the other. The number at (r, c) is (code - zero) scale, where blocks of
// row_block x column_block numbers share a scale and a zero point; for nf4 and fp4 it is
// table[code] scale. For float16 and bfloat16 it is a tensor [rows, columns] of that type, without
// scales.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "engine/operators/operator.h"

namespace tandem {

enum class PackedKind : std::uint8_t {
  uint8,
  int8,
  uint4,
  int4,
  uint2,
  nf4,
  fp4,
  float16,
  bfloat16
};

struct PackedFormat {
  PackedKind kind;
  std::string_view name;
  int bits;
  bool is_signed;   // two's complement
  bool high_first;  // the first of two codes is in the upper half of a byte
  bool has_table;   // codes are places in a table of 16 numbers
  DType data;       // the element type of the tensor

  /// Whether there are codes, and scales for them; otherwise there are numbers.
  bool has_codes() const { return !is_float(data); }
};

const PackedFormat& packed_format(PackedKind kind);
/// Nothing for an unknown name.
std::optional<PackedKind> packed_kind(std::string_view name);
/// The kind whose numbers are of this type: float16 or bfloat16.
std::optional<PackedKind> packed_kind_of(DType numbers);
/// "uint8, int8, ...", for messages.
std::string packed_kind_names();

/// The 16 numbers of nf4 (QLoRA, Dettmers et al. 2023) and of fp4, as bitsandbytes has them.
const std::array<float, 16>& packed_table(PackedKind kind);

struct Packing {
  PackedKind kind = PackedKind::uint8;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_bytes = 0;
  std::int64_t row_block = 1, column_block = 1;
  std::int64_t zero = 0;  // where there is no tensor of zero points

  std::int64_t scale_rows() const { return (rows + row_block - 1) / row_block; }
  std::int64_t scale_columns() const { return (columns + column_block - 1) / column_block; }
  /// Where the scale of (r, c) lies in the tensor of scales.
  std::int64_t scale_at(std::int64_t r, std::int64_t c) const {
    return r / row_block * scale_columns() + c / column_block;
  }
};

/// The packing of input `data` of a node with the attributes below; scales and zero points are the
/// two inputs after it. All axes of the data but the last are rows. Throws through NodeView::fail
/// where the three inputs do not fit together.
Packing checked_packing(const NodeView& node, std::size_t data);
/// As above, for a node that was checked, from the type of its data.
Packing packing_of(const Attributes& attributes, const TensorType& data);

/// Whether the state is a weight that was packed: it has the bytes, and its readers unpack them.
bool is_packed(const State& state);

/// kind, columns, row_block (0: all rows share their scales), column_block (0: all columns) and
/// zero.
std::vector<AttributeSpec> packing_attributes();

}  // namespace tandem
