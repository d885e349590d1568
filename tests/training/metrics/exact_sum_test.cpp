// Sums without rounding: against sums that are exact in integers, and in any order.
#include "engine/metrics/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace tandem {
namespace {

double sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double number : numbers) sum += number;
  return sum.value();
}

TEST(ExactSumTest, KeepsWhatDoublesLose) {
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({1e300, 1, -1e300}), 1);
  EXPECT_EQ(sum_of({-1e300, -1, 1e300}), -1);
  EXPECT_EQ(sum_of({0x1p53, 1, 1}), 0x1p53 + 2);
  EXPECT_EQ(sum_of({0x1p1023, -0x1p-1074, -0x1p1023}), -0x1p-1074);
  EXPECT_EQ(sum_of({5e-324, 5e-324}), 1e-323);
  EXPECT_EQ(sum_of({std::numeric_limits<double>::max(), -std::numeric_limits<double>::max()}), 0);
  EXPECT_EQ(sum_of({-0.0, 0.0}), 0);
}

TEST(ExactSumTest, IsThatOfIntegers) {
  std::mt19937_64 random(1);
  std::vector<double> numbers;
  std::int64_t expected = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto number = static_cast<std::int64_t>(random() >> 25) - (std::int64_t{1} << 38);
    expected += number;
    numbers.push_back(static_cast<double>(number) * 0x1p-60);
  }
  EXPECT_EQ(sum_of(numbers), static_cast<double>(expected) * 0x1p-60);
}

TEST(ExactSumTest, HasTheSameBitsInAnyOrderAndSplit) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-80, 80), mantissa(-1, 1);
  std::vector<double> numbers(5000);
  for (double& number : numbers)
    number = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
  const double expected = sum_of(numbers);
  for (int i = 0; i < 3; ++i) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    EXPECT_EQ(sum_of(numbers), expected);
    ExactSum parts[3], all;
    for (std::size_t at = 0; at < numbers.size(); ++at) parts[at % 3] += numbers[at];
    for (const ExactSum& part : parts) all += part;
    EXPECT_EQ(all.value(), expected);
  }
}

TEST(ExactSumTest, IsNotANumberWhereADoubleWouldNotBe) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sum_of({1, inf, 2}), inf);
  EXPECT_EQ(sum_of({1, -inf}), -inf);
  EXPECT_TRUE(std::isnan(sum_of({inf, -inf, 1})));
  EXPECT_TRUE(std::isnan(sum_of({std::nan(""), 1})));
  ExactSum infinite, all;
  infinite += inf;
  all += infinite;
  EXPECT_EQ(all.value(), inf);
}

}  // namespace
}  // namespace tandem
