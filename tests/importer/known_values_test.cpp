// Values by which buffers are known, such as evenly spaced numbers.
#include "importer/buffers/known_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::importer {
namespace {

HostTensor tensor_of(const std::vector<float>& values) {
  HostTensor tensor(TensorType{DType::float32, {static_cast<std::int64_t>(values.size())}});
  std::copy(values.begin(), values.end(), tensor.as<float>().begin());
  return tensor;
}

/// As torch.linspace(first, last, count) in float32.
HostTensor linspace(float first, float last, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i)
    values.push_back(first +
                     (last - first) * static_cast<float>(i) / static_cast<float>(count - 1));
  return tensor_of(values);
}

TEST(KnownValues, EvenlySpacedNumbersAreAnArithmeticSeries) {
  EXPECT_TRUE(is_arithmetic(linspace(0, 5, 20)));       // centres of a radial basis
  EXPECT_TRUE(is_arithmetic(linspace(-10, 10, 51)));    // the support of a distribution
  EXPECT_TRUE(is_arithmetic(linspace(0.1f, 0.9f, 9)));  // quantiles
  EXPECT_TRUE(is_arithmetic(tensor_of({8, 7, 6, 5, 4, 3, 2, 1})));
}

TEST(KnownValues, OtherNumbersAreNoArithmeticSeries) {
  EXPECT_FALSE(is_arithmetic(tensor_of({0, 1, 2, 3, 4, 5, 6})));  // too few to be sure
  EXPECT_FALSE(is_arithmetic(tensor_of(std::vector<float>(9))));
  EXPECT_FALSE(is_arithmetic(tensor_of({0, 1, 2, 3, 4.01f, 5, 6, 7})));
  EXPECT_FALSE(is_arithmetic(tensor_of({1, 2, 4, 8, 16, 32, 64, 128})));
}

}  // namespace
}  // namespace tandem::importer
