#include "engine/operators/packed/packing.h"

#include <algorithm>

#include "engine/operators/checks.h"

namespace tandem {
namespace {

constexpr std::array formats{
    PackedFormat{PackedKind::uint8, "uint8", 8, false, false, false, DType::uint8},
    PackedFormat{PackedKind::int8, "int8", 8, true, false, false, DType::int8},
    PackedFormat{PackedKind::uint4, "uint4", 4, false, false, false, DType::uint8},
    PackedFormat{PackedKind::int4, "int4", 4, true, false, false, DType::uint8},
    PackedFormat{PackedKind::uint2, "uint2", 2, false, false, false, DType::uint8},
    PackedFormat{PackedKind::nf4, "nf4", 4, false, true, true, DType::uint8},
    PackedFormat{PackedKind::fp4, "fp4", 4, false, true, true, DType::uint8},
    PackedFormat{PackedKind::float16, "float16", 16, true, false, false, DType::float16},
    PackedFormat{PackedKind::bfloat16, "bfloat16", 16, true, false, false, DType::bfloat16},
};

constexpr std::array<float, 16> nf4_table{-1.0f,
                                          -0.6961928009986877f,
                                          -0.5250730514526367f,
                                          -0.39491748809814453f,
                                          -0.28444138169288635f,
                                          -0.18477343022823334f,
                                          -0.09105003625154495f,
                                          0.0f,
                                          0.07958029955625534f,
                                          0.16093020141124725f,
                                          0.24611230194568634f,
                                          0.33791524171829224f,
                                          0.44070982933044434f,
                                          0.5626170039176941f,
                                          0.7229568362236023f,
                                          1.0f};

constexpr std::array<float, 16> fp4_table{
    0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};

}  // namespace

const PackedFormat& packed_format(PackedKind kind) {
  return *std::find_if(formats.begin(), formats.end(),
                       [&](const PackedFormat& format) { return format.kind == kind; });
}

std::optional<PackedKind> packed_kind(std::string_view name) {
  for (const PackedFormat& format : formats) {
    if (format.name == name) return format.kind;
  }
  return std::nullopt;
}

std::optional<PackedKind> packed_kind_of(DType numbers) {
  for (const PackedFormat& format : formats) {
    if (!format.has_codes() && format.data == numbers) return format.kind;
  }
  return std::nullopt;
}

std::string packed_kind_names() {
  std::string names;
  for (const PackedFormat& format : formats) {
    if (!names.empty()) names += ", ";
    names += format.name;
  }
  return names;
}

const std::array<float, 16>& packed_table(PackedKind kind) {
  return kind == PackedKind::nf4 ? nf4_table : fp4_table;
}

bool is_packed(const State& state) {
  return state.kind == StateKind::parameter && !is_float(state.start.dtype());
}

std::vector<AttributeSpec> packing_attributes() {
  return {{"kind", std::string(), true},
          {"columns", std::int64_t{0}, true},
          {"row_block", std::int64_t{1}},
          {"column_block", std::int64_t{0}},
          {"zero", std::int64_t{0}}};
}

Packing packing_of(const Attributes& attributes, const TensorType& data) {
  Packing packing;
  packing.kind = *packed_kind(attributes.text("kind"));
  packing.columns = attributes.integer("columns");
  packing.row_bytes = data.shape.back() * static_cast<std::int64_t>(size_of(data.dtype));
  packing.rows = element_count(Shape(data.shape.begin(), data.shape.end() - 1));
  packing.row_block = attributes.integer("row_block");
  packing.column_block = attributes.integer("column_block");
  packing.zero = attributes.integer("zero");
  if (packing.row_block == 0) packing.row_block = std::max<std::int64_t>(packing.rows, 1);
  if (packing.column_block == 0) packing.column_block = std::max<std::int64_t>(packing.columns, 1);
  return packing;
}

Packing checked_packing(const NodeView& node, std::size_t data) {
  const std::string& kind = node.attributes().text("kind");
  if (!packed_kind(kind)) node.fail("attribute 'kind'", packed_kind_names(), "\"" + kind + "\"");
  const TensorType& bytes = node.input(data);
  const PackedFormat& format = packed_format(*packed_kind(kind));
  require_dtype(node, data, format.data);
  if (bytes.rank() < 1) node.fail("rank of the packed data", "1 or more", "0");
  for (const char* name : {"columns", "row_block", "column_block"}) {
    if (node.attributes().integer(name) >= 0) continue;
    node.fail(std::string("attribute '") + name + "'", "0 or more",
              std::to_string(node.attributes().integer(name)));
  }
  const Packing packing = packing_of(node.attributes(), bytes);
  const std::int64_t needed = (packing.columns * format.bits + 7) / 8;
  if (packing.row_bytes < needed) {
    node.fail("bytes of a row of the packed data",
              std::to_string(needed) + " or more for " + std::to_string(packing.columns) +
                  " columns of " + std::to_string(format.bits) + " bits",
              std::to_string(packing.row_bytes));
  }
  if (!format.has_codes()) {
    for (std::size_t i = data + 1; i < data + 3; ++i) {
      if (node.has_input(i)) node.fail("scales and zero points of " + kind, "none");
    }
    return packing;
  }
  if (!node.has_input(data + 1)) node.fail("scales of " + kind, "a tensor", "none");
  Shape wanted(bytes.shape.begin(), bytes.shape.end() - 1);
  if (packing.row_block != 1) wanted = {packing.scale_rows()};
  wanted.push_back(packing.scale_columns());
  require_float(node, data + 1);
  require_shape(node, data + 1, wanted);
  if (!node.has_input(data + 2)) return packing;
  if (format.has_table) node.fail("zero points of kind " + kind, "none");
  require_shape(node, data + 2, wanted);
  const DType zeros = node.input(data + 2).dtype;
  if (zeros != DType::uint8 && zeros != DType::int8 && !is_float(zeros)) {
    node.fail("element type of the zero points", "uint8, int8 or a floating point type",
              std::string(name_of(zeros)));
  }
  return packing;
}

}  // namespace tandem
