// Halves of float32: every one comes back, and the upper half is the nearest bfloat16.
#include "engine/graph/split_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/graph/half.h"

namespace tandem {
namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Ends, ties and their neighbours, and some between.
std::vector<std::uint32_t> lower_halves() {
  std::vector<std::uint32_t> all{0, 1, 2, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0x8002, 0xfffe, 0xffff};
  for (std::uint32_t i = 1; i < 32; ++i) all.push_back(i * 2039 % 65536);
  return all;
}

// All signs, exponents and upper mantissas.
TEST(SplitFloat, EveryFloatComesBack) {
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : lower_halves()) {
      const std::uint32_t bits = upper << 16 | lower;
      const float x = float_of(bits);
      const SplitFloat halves = split_float(x);
      const float back = join_float(halves.top, halves.tail), top = bfloat16_to_float(halves.top);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(back) && std::isnan(top)) << std::hex << bits;
        ASSERT_EQ(std::signbit(back), std::signbit(x)) << std::hex << bits;
        continue;
      }
      ASSERT_EQ(bits_of(back), bits) << std::hex;
      ASSERT_FALSE(std::isnan(top)) << std::hex << bits;
      ASSERT_EQ(std::signbit(top), std::signbit(x)) << std::hex << bits;
      // Rounded to nearest; only the direction of ties differs from ties to even.
      const std::uint16_t even = float_to_bfloat16(x);
      const bool tie = lower == 0x8000;
      ASSERT_EQ(halves.top, tie ? upper + 1 : even) << std::hex << bits;
    }
  }
}

// Every pair that is not NaN is what its float32 is split into, so nothing else is ever written.
TEST(SplitFloat, EveryPairIsAFloat) {
  for (std::uint32_t top = 0; top < 65536; ++top) {
    for (int tail = -32768; tail < 32768; tail += 257) {
      const float x = join_float(static_cast<std::uint16_t>(top), static_cast<std::int16_t>(tail));
      if (std::isnan(x)) continue;
      const SplitFloat halves = split_float(x);
      ASSERT_EQ(halves.top, top);
      ASSERT_EQ(halves.tail, tail);
    }
  }
}

TEST(SplitFloat, EndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(split_float(0.0f).top, 0);
  EXPECT_EQ(split_float(-0.0f).top, 0x8000);
  EXPECT_EQ(split_float(-0.0f).tail, 0);
  EXPECT_EQ(split_float(infinity).top, 0x7f80);
  EXPECT_EQ(split_float(-infinity).top, 0xff80);
  EXPECT_EQ(split_float(infinity).tail, 0);
  // Beyond the largest bfloat16, lookups read infinity; the value is kept.
  const SplitFloat halves = split_float(largest);
  EXPECT_EQ(halves.top, 0x7f80);
  EXPECT_EQ(join_float(halves.top, halves.tail), largest);
  const SplitFloat tiny = split_float(float_of(1));
  EXPECT_EQ(tiny.top, 0);
  EXPECT_EQ(tiny.tail, 1);
  // NaNs that a plain sum would carry over into other numbers.
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    const SplitFloat nan = split_float(float_of(bits));
    EXPECT_TRUE(std::isnan(bfloat16_to_float(nan.top))) << std::hex << bits;
    EXPECT_TRUE(std::isnan(join_float(nan.top, nan.tail))) << std::hex << bits;
  }
}

TEST(SplitFloat, HalvesMayBeLeftOut) {
  const std::vector<float> x{1.5f, -3.1415927f, 1e-40f};
  std::vector<std::uint16_t> tops(3), only_tops(3);
  std::vector<std::int16_t> tails(3), only_tails(3);
  split_floats(x.data(), tops.data(), tails.data(), 3);
  split_floats(x.data(), only_tops.data(), nullptr, 3);
  split_floats(x.data(), nullptr, only_tails.data(), 3);
  EXPECT_EQ(tops, only_tops);
  EXPECT_EQ(tails, only_tails);
  std::vector<float> back(3);
  join_floats(tops.data(), tails.data(), back.data(), 3);
  EXPECT_EQ(back, x);
}

}  // namespace
}  // namespace tandem
