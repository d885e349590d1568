// 8-bit floats: all 256 numbers of each type, and roundings with all their borders, by ml_dtypes
// and ONNX's reference.
#include "engine/graph/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/graph/host_tensor.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

float float_at(const Json& bits) { return std::bit_cast<float>(bits.get<std::uint32_t>()); }

const Json& types() {
  static const Json all =
      Json::parse(read_file(source_folder() + "/tests/data/float8.json")).at("types");
  return all;
}

DType type_of(const Json& json) { return *dtype_from_name(json.at("name").get<std::string>()); }

constexpr DType e4m3 = DType::float8_e4m3fn, powers = DType::float8_e8m0fnu;
static_assert(decode_float8(e4m3, 0x7e) == 448 && encode_float8(e4m3, 448) == 0x7e);

TEST(Float8, EveryCodeIsItsNumber) {
  ASSERT_EQ(types().size(), 5u);
  for (const Json& json : types()) {
    const DType dtype = type_of(json);
    ASSERT_TRUE(is_float8(dtype) && !is_float(dtype) && !is_integer(dtype));
    EXPECT_EQ(size_of(dtype), 1u);
    for (int code = 0; code < 256; ++code) {
      const float want = float_at(json.at("values")[static_cast<std::size_t>(code)]);
      const float got = float8_values(dtype)[static_cast<std::size_t>(code)];
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << name_of(dtype) << " " << code;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want))
            << name_of(dtype) << " " << code;
      }
    }
  }
}

TEST(Float8, RoundsAsOnnxSays) {
  int rows = 0;
  for (const Json& json : types()) {
    if (!json.contains("rounded")) continue;
    const DType dtype = type_of(json);
    for (const Json& row : json.at("rounded")) {
      const float x = float_at(row[0]);
      EXPECT_EQ(encode_float8(dtype, x, true), row[1].get<int>()) << name_of(dtype) << " " << x;
      EXPECT_EQ(encode_float8(dtype, x, false), row[2].get<int>()) << name_of(dtype) << " " << x;
      ++rows;
    }
  }
  EXPECT_GT(rows, 4000);
}

TEST(Float8, PowersOfTwoRoundInThreeWays) {
  const Json& rows = types().back().at("powers");
  ASSERT_GT(rows.size(), 30u);
  for (const Json& row : rows) {
    const float x = float_at(row[0]);
    const Float8Rounding ways[] = {Float8Rounding::up, Float8Rounding::down,
                                   Float8Rounding::nearest};
    for (std::size_t way = 0; way < 3; ++way)
      EXPECT_EQ(encode_float8(powers, x, true, ways[way]), row[way + 1].get<int>()) << x;
  }
}

// ONNX's table of special values, which its reference does not follow everywhere.
TEST(Float8, PowersOfTwoOutsideOfTheirRange) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  constexpr int largest = 0xfe, is_nan = 0xff;
  const auto saturated = [](float x) { return encode_float8(powers, x, true, Float8Rounding::up); };
  EXPECT_EQ(saturated(0), 0);
  EXPECT_EQ(saturated(infinity), largest);
  EXPECT_EQ(saturated(0x1.8p127f), largest);
  EXPECT_EQ(saturated(0x1p-130f), 0);
  EXPECT_EQ(saturated(0x1p-127f), 0);
  EXPECT_EQ(saturated(0x1.2p-127f), 1);
  EXPECT_EQ(saturated(nan), is_nan);
  const auto other = [](float x) {
    return encode_float8(powers, x, false, Float8Rounding::nearest);
  };
  EXPECT_EQ(other(0), is_nan);
  EXPECT_EQ(other(infinity), is_nan);
  EXPECT_EQ(other(0x1.8p127f), is_nan);
  EXPECT_EQ(other(0x1p-130f), is_nan);
  EXPECT_EQ(other(0x1p127f), largest);
  EXPECT_EQ(other(nan), is_nan);
}

TEST(Float8, TensorsAreConverted) {
  const HostTensor x = HostTensor::from<double>({5}, {0.3, -500, 1e-9, 2, -0.0});
  const HostTensor narrow = x.converted(e4m3);
  EXPECT_EQ(narrow.bytes(), 5u);
  const double want[] = {0.3125, -448, 0, 2, 0};
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(narrow.number(i), want[i]) << i;
  const HostTensor wide = narrow.converted(DType::float32);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(wide.number(i), want[i]) << i;
  EXPECT_EQ(narrow.converted(DType::float8_e5m2).number(0), 0.3125);
  EXPECT_EQ(HostTensor::from<std::int64_t>({1}, {17}).converted(e4m3).number(0), 16);
  EXPECT_EQ(narrow.integers(), (std::vector<std::int64_t>{0, -448, 0, 2, 0}));
}

TEST(Float8, NamesAreThoseOfMlDtypes) {
  for (const char* name :
       {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"}) {
    ASSERT_TRUE(dtype_from_name(name)) << name;
    EXPECT_NE(dtype_names().find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace tandem
