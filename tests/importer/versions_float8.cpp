// Rows of 8-bit floats: conversions, scales, and operators that move them or ask what they are.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;
constexpr DType e5m2 = DType::float8_e5m2, powers = DType::float8_e8m0fnu;

// 0.3 in 8 bits as ml_dtypes gives it: 0.3125 with three bits, or two, after the leading one.
void add_float8_casts(Rows& rows) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType from : {f32, f16, f64, i32}) {
    const bool whole = from == i32;
    const HostTensor x = typed(from, {4}, {whole ? 17 : 0.3, -3, 1000, -1000});
    const double first = whole ? 16 : 0.3125;
    VersionRow row{.op = "Cast",
                   .first = 19,
                   .inputs = {x},
                   .attributes = {{"to", 17}},
                   .outputs = {typed(e4m3, {4}, {first, -3, 448, -448})},
                   .note = "8 bits"};
    rows.push_back(row);
    row.attributes.emplace_back("saturate", 0);
    row.outputs = {typed(e4m3, {4}, {first, -3, nan, nan})};
    row.note = "8 bits, without saturation";
    rows.push_back(std::move(row));
  }
  for (DType to : {f32, f16, f64, i32}) {
    const std::int64_t number = to == f32 ? 1 : to == f16 ? 10 : to == f64 ? 11 : 6;
    rows.push_back({.op = "Cast",
                    .first = 19,
                    .inputs = {typed(e5m2, {3}, {1.75, -3, 1024})},
                    .attributes = {{"to", number}},
                    .outputs = {typed(to, {3}, {to == i32 ? 1 : 1.75, -3, 1024})},
                    .note = "from 8 bits"});
  }
  rows.push_back({.op = "Cast",
                  .first = 19,
                  .inputs = {typed(e5m2, {2}, {1.75, 1024})},
                  .attributes = {{"to", 17}},
                  .outputs = {typed(e4m3, {2}, {1.75, 448})},
                  .note = "from 8 bits to others"});
  rows.push_back({.op = "CastLike",
                  .first = 19,
                  .inputs = {floats({2}, {0.3, 1e6}), typed(e5m2, {1}, {0})},
                  .outputs = {typed(e5m2, {2}, {0.3125, 57344})},
                  .note = "8 bits"});
  const HostTensor x = floats({4}, {3, 0.3, 2.5, 1});
  for (const auto& [mode, y] : {std::pair{"up", Numbers{4, 0.5, 4, 1}},
                                {"down", {2, 0.25, 2, 1}},
                                {"nearest", {4, 0.25, 2, 1}}}) {
    rows.push_back({.op = "Cast",
                    .first = 24,
                    .inputs = {x},
                    .attributes = {{"to", 24}, {"round_mode", std::string(mode)}},
                    .outputs = {typed(powers, {4}, y)},
                    .note = std::string("powers of two, ") + mode});
  }
  rows.push_back({.op = "BitCast",
                  .inputs = {typed(u8, {2}, {0x7e, 0x80})},
                  .attributes = {{"to", 17}},
                  .outputs = {typed(e4m3, {2}, {448, -0.0})},
                  .note = "uint8 as 8-bit float"});
}

void add_float8_scales(Rows& rows) {
  for (DType dtype : {f32, f16}) {
    rows.push_back({.op = "QuantizeLinear",
                    .first = 19,
                    .inputs = {typed(dtype, {4}, {0.6, -6, 2000, -2000}), typed(dtype, {}, {2}),
                               typed(e4m3, {}, {0})},
                    .outputs = {typed(e4m3, {4}, {0.3125, -3, 448, -448})},
                    .note = "8-bit floats"});
    rows.push_back({.op = "DequantizeLinear",
                    .first = 19,
                    .inputs = {typed(e4m3, {2, 2}, {0.3125, -3, 448, 2}), typed(dtype, {2}, {2, 4}),
                               typed(e4m3, {2}, {0, 0})},
                    .attributes = {{"axis", 0}},
                    .outputs = {typed(dtype, {2, 2}, {0.625, -6, 1792, 8})},
                    .note = "8-bit floats"});
  }
  HostTensor infinite(TensorType{e5m2, {2}});  // typed() saturates
  const std::uint8_t codes[] = {0x7c, 0x35};   // infinity, 1.25 / 4
  std::memcpy(infinite.data(), codes, sizeof codes);
  rows.push_back({.op = "QuantizeLinear",
                  .first = 21,
                  .inputs = {floats({2}, {1e6, 0.3}), floats({}, {1})},
                  .attributes = {{"output_dtype", 19}, {"saturate", 0}},
                  .outputs = {infinite},
                  .note = "8-bit floats that do not saturate"});
  for (const char* op : {"QuantizeLinear", "DequantizeLinear"}) {
    const bool narrows = std::string(op) == "QuantizeLinear";
    rows.push_back({.op = op,
                    .first = 19,
                    .inputs = {narrows ? floats({1}, {1}) : typed(e4m3, {1}, {1}), floats({}, {1}),
                               typed(e4m3, {}, {1})},
                    .note = "a zero point of 8-bit floats",
                    .refused = "the zero point of 8-bit floats: expected 0"});
  }
  rows.push_back({.op = "DequantizeLinear",
                  .first = 24,
                  .inputs = {typed(e4m3, {2}, {0.3125, -3}), typed(powers, {}, {0.25})},
                  .outputs = {floats({2}, {0.078125, -0.75})},
                  .note = "a scale of 8 bits"});
}

void add_float8_moves(Rows& rows) {
  const HostTensor x = typed(e4m3, {2, 2}, {1, -2, 448, 0.3125});
  rows.push_back({.op = "Identity", .first = 19, .inputs = {x}, .outputs = {x}, .note = "8 bits"});
  rows.push_back({.op = "Transpose",
                  .first = 21,
                  .inputs = {x},
                  .outputs = {typed(e4m3, {2, 2}, {1, 448, -2, 0.3125})},
                  .note = "8 bits"});
  rows.push_back({.op = "Pad",
                  .first = 21,
                  .inputs = {x, integers({4}, {0, 1, 0, 0}), typed(e4m3, {}, {-2})},
                  .outputs = {typed(e4m3, {2, 3}, {-2, 1, -2, -2, 448, 0.3125})},
                  .note = "8 bits"});
  for (const char* op : {"IsNaN", "IsInf"}) {
    const bool nans = std::string(op) == "IsNaN";
    HostTensor codes(TensorType{e5m2, {3}});
    const unsigned char bytes[] = {0x3c, 0x7e, 0x7c};  // 1, NaN, infinity
    std::copy(std::begin(bytes), std::end(bytes), static_cast<unsigned char*>(codes.data()));
    rows.push_back({.op = op,
                    .first = 20,
                    .inputs = {codes},
                    .outputs = {booleans({3}, nans ? Numbers{0, 1, 0} : Numbers{0, 0, 1})},
                    .note = "8 bits"});
  }
}

}  // namespace

void add_float8_rows(Rows& rows) {
  add_float8_casts(rows);
  add_float8_scales(rows);
  add_float8_moves(rows);
}

}  // namespace tandem::testing
