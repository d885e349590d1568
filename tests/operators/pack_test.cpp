// Packing of floats into weights of few bits: codes and scales by hand, and errors of random rows.
#include "engine/operators/packed/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "engine/graph/error.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HostTensor random_matrix(std::int64_t rows, std::int64_t columns) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.02f);
  HostTensor w(TensorType{DType::float32, {rows, columns}});
  for (float& x : w.as<float>()) x = normal(random);
  return w;
}

std::vector<int> bytes_of(const HostTensor& tensor) {
  const auto* const bytes = static_cast<const std::uint8_t*>(tensor.data());
  return {bytes, bytes + tensor.bytes()};
}

TEST(Pack, Int4HasTheLargestNumberAsMinus8) {
  // Scale 4 / -8 = -0.5: codes -8, 2, -1, 0, 7 of two's complement, the first in the lower half.
  const HostTensor w = HostTensor::from<float>({1, 5}, {4, -1, 0.5f, 0, -3.5f});
  const PackedTensor packed = pack(w, PackedKind::int4, 8, "w");
  EXPECT_THAT(bytes_of(packed.data), ElementsAre(0x28, 0x0f, 0x07));
  EXPECT_EQ(packed.scales.dtype(), DType::float16);
  EXPECT_EQ(packed.scales.number(0), -0.5);
  EXPECT_EQ(packed.error, 0);
  const HostTensor back = unpack(packed);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(back.number(i), w.number(i)) << i;
}

TEST(Pack, Int8HasTheLargestNumberAs127) {
  const HostTensor w = HostTensor::from<float>({2, 2}, {-254, 3, 0, 0});
  const PackedTensor packed = pack(w, PackedKind::int8, 32, "w");
  EXPECT_THAT(bytes_of(packed.data), ElementsAre(0x81, 2, 0, 0));  // -127; 1.5 is rounded to even
  EXPECT_EQ(packed.scales.number(0), 2);
  EXPECT_EQ(packed.scales.number(1), 0);
  EXPECT_NEAR(packed.error, 1 / std::sqrt(254.0 * 254 + 9), 1e-9);
}

TEST(Pack, Nf4TakesTheNearestNumberOfTheTable) {
  // bitsandbytes' table: 1 has code 15, 0.44070983 code 12, 0.3 lies nearer to 0.3379 (11) than to
  // 0.2461 (10), -0.05 nearer to -0.0911 (6) than to 0 (7). The first code is in the upper half.
  const HostTensor w = HostTensor::from<float>({1, 4}, {2, 0.88141966f, 0.6f, -0.1f});
  const PackedTensor packed = pack(w, PackedKind::nf4, 64, "w");
  EXPECT_THAT(bytes_of(packed.data), ElementsAre(0xfc, 0xb6));
  EXPECT_EQ(packed.scales.number(0), 2);
}

// Numbers of a normal distribution in blocks of 32 and 64; QLoRA's figure 3 and llama.cpp's
// measurements of Q8_0 and Q4_0 are of this size.
TEST(Pack, ErrorsAreOfTheUsualSize) {
  const HostTensor w = random_matrix(64, 1000);
  const auto error = [&](PackedKind kind) { return pack(w, kind, usual_block(kind), "w").error; };
  EXPECT_NEAR(error(PackedKind::int8), 0.0047, 0.001);
  EXPECT_NEAR(error(PackedKind::int4), 0.083, 0.01);
  EXPECT_NEAR(error(PackedKind::nf4), 0.091, 0.01);
  EXPECT_NEAR(error(PackedKind::bfloat16), 0.0017, 0.0005);
  EXPECT_LT(error(PackedKind::float16), 0.0003);
}

TEST(Pack, TheErrorIsThatOfTheUnpackedNumbers) {
  const HostTensor w = random_matrix(3, 77);
  for (const PackedKind kind : {PackedKind::int8, PackedKind::int4, PackedKind::nf4,
                                PackedKind::float16, PackedKind::bfloat16}) {
    for (const DType from : {DType::float32, DType::float16, DType::bfloat16}) {
      const HostTensor in = w.converted(from);
      const PackedTensor packed = pack(in, kind, 16, "w");
      const HostTensor back = unpack(packed);
      double error = 0, size = 0;
      for (std::int64_t i = 0; i < in.type().elements(); ++i) {
        error += std::pow(back.number(i) - in.number(i), 2);
        size += std::pow(in.number(i), 2);
      }
      EXPECT_NEAR(packed.error, std::sqrt(error / size), 1e-9) << packed_format(kind).name;
    }
  }
}

TEST(Pack, SmallScalesAreFloat32) {
  const HostTensor w = HostTensor::from<float>({1, 2}, {1e-7f, -5e-8f});
  const PackedTensor packed = pack(w, PackedKind::int8, 32, "w");
  EXPECT_EQ(packed.scales.dtype(), DType::float32);
  EXPECT_LT(packed.error, 0.01);
}

TEST(Pack, WhatCannotBePackedIsNamed) {
  const auto refusal = [](float x, PackedKind kind) {
    try {
      pack(HostTensor::from<float>({1, 2}, {1, x}), kind, 32, "fc.weight");
    } catch (const Error& error) {
      return to_string(error.diagnostics()[0]);
    }
    return std::string();
  };
  EXPECT_THAT(refusal(std::numeric_limits<float>::infinity(), PackedKind::int4),
              HasSubstr("fc.weight"));
  EXPECT_THAT(refusal(std::nanf(""), PackedKind::bfloat16), HasSubstr("finite"));
  EXPECT_THAT(refusal(70000, PackedKind::float16), HasSubstr("65504"));
}

}  // namespace
}  // namespace tandem::testing
