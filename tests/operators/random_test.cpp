// RandomUniformLike and RandomNormalLike: mean, deviation and the share below a bound match the
// distribution; the same key gives the same numbers, and another step or path gives others.
#include <cmath>

#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t drawn_numbers = 40000;

HostTensor draw(const std::string& op, const Attributes& attributes, std::uint64_t step,
                const std::string& path) {
  const std::vector<HostTensor> x{HostTensor(TensorType{DType::float32, {drawn_numbers / 8, 8}})};
  const Graph graph = single_node(op, x, attributes, path);
  StepContext context;
  context.seed = 7;
  context.step = step;
  HostTensor y;
  each_kernel(graph,
              [&](const Kernel& kernel) { y = run_in_context(kernel, graph, x, context)[0]; });
  return y;
}

struct Sample {
  double mean = 0, deviation = 0, below = 0, least = INFINITY, largest = -INFINITY;

  Sample(const HostTensor& x, double bound) {
    for (std::int64_t i = 0; i < drawn_numbers; ++i) {
      const double value = x.number(i);
      mean += value / drawn_numbers;
      deviation += value * value / drawn_numbers;
      below += (value < bound) / static_cast<double>(drawn_numbers);
      least = std::min(least, value);
      largest = std::max(largest, value);
    }
    deviation = std::sqrt(deviation - mean * mean);
  }
};

// The bounds are at least five standard errors wide.
TEST(Random, HasItsDistribution) {
  const Sample uniform(draw("RandomUniformLike", {{"low", -1.0}, {"high", 3.0}}, 1, "a"), 0);
  EXPECT_NEAR(uniform.mean, 1, 0.03);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_NEAR(uniform.below, 0.25, 0.012);
  EXPECT_GE(uniform.least, -1);
  EXPECT_LT(uniform.largest, 3);
  const Sample normal(draw("RandomNormalLike", {{"mean", 2.0}, {"scale", 3.0}}, 1, "a"), -1);
  EXPECT_NEAR(normal.mean, 2, 0.08);
  EXPECT_NEAR(normal.deviation, 3, 0.06);
  EXPECT_NEAR(normal.below, 0.158655, 0.01);  // the bound is one deviation below the mean
  EXPECT_LT(normal.least, 2 - 3 * 3.5);
  EXPECT_GT(normal.largest, 2 + 3 * 3.5);
}

TEST(Random, DependsOnItsKeyAlone) {
  for (const char* op : {"RandomUniformLike", "RandomNormalLike"}) {
    SCOPED_TRACE(op);
    const HostTensor first = draw(op, {}, 1, "a");
    const auto equal_numbers = [&](const HostTensor& other) {
      int equal = 0;
      for (std::int64_t i = 0; i < drawn_numbers; ++i) equal += first.number(i) == other.number(i);
      return equal;
    };
    EXPECT_EQ(equal_numbers(draw(op, {}, 1, "a")), drawn_numbers);
    EXPECT_LT(equal_numbers(draw(op, {}, 2, "a")), 10);
    EXPECT_LT(equal_numbers(draw(op, {}, 1, "b")), 10);
  }
}

}  // namespace
}  // namespace tandem::testing
