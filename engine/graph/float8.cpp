// The tables of all numbers that 8-bit floats hold.
#include "engine/graph/float8.h"

namespace tandem {
namespace {

using Table = std::array<float, 256>;

constexpr Table table_of(DType dtype) {
  Table table{};
  for (int code = 0; code < 256; ++code)
    table[static_cast<std::size_t>(code)] = decode_float8(dtype, static_cast<std::uint8_t>(code));
  return table;
}

constexpr DType first_float8 = DType::float8_e4m3fn;
constexpr std::array<Table, 5> tables{
    table_of(DType::float8_e4m3fn), table_of(DType::float8_e4m3fnuz), table_of(DType::float8_e5m2),
    table_of(DType::float8_e5m2fnuz), table_of(DType::float8_e8m0fnu)};

}  // namespace

const std::array<float, 256>& float8_values(DType dtype) {
  assert(is_float8(dtype));
  return tables[static_cast<std::size_t>(dtype) - static_cast<std::size_t>(first_float8)];
}

std::optional<Float8Rounding> float8_rounding(std::string_view name) {
  if (name == "up") return Float8Rounding::up;
  if (name == "down") return Float8Rounding::down;
  if (name == "nearest") return Float8Rounding::nearest;
  return std::nullopt;
}

}  // namespace tandem
