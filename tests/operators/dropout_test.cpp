// Dropout's random numbers: known answers of Philox, statistics, repeatability, and the mask in the
// gradient.
#include <cmath>

#include "engine/data/loader.h"
#include "engine/gradient/gradient.h"
#include "kernels/shared/philox.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

void expect_block(const PhiloxBlock& counter, std::uint32_t key0, std::uint32_t key1,
                  const std::vector<std::uint32_t>& expected) {
  const PhiloxBlock block = philox(counter, key0, key1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], expected[i]) << "word " << i;
}

// The test vectors for philox4x32 with 10 rounds that are published with Random123.
TEST(Philox, KnownAnswers) {
  expect_block({{0, 0, 0, 0}}, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  expect_block({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff, 0xffffffff,
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_block({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0,
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Philox, EachPartOfTheKeyMatters) {
  const std::uint64_t stream = random_stream(1, 2, 3, hash_of_path("encoder.drop"));
  EXPECT_NE(stream, random_stream(2, 2, 3, hash_of_path("encoder.drop")));
  EXPECT_NE(stream, random_stream(1, 3, 3, hash_of_path("encoder.drop")));
  EXPECT_NE(stream, random_stream(1, 2, 4, hash_of_path("encoder.drop")));
  EXPECT_NE(stream, random_stream(1, 2, 3, hash_of_path("decoder.drop")));
  EXPECT_NE(random_stream(1, 2, 0, 0), random_stream(2, 1, 0, 0));
}

TEST(Philox, ElementsOfABlockAreItsWords) {
  const std::uint64_t stream = 0x123456789abcdef0u, first = 5ull << 32;
  const PhiloxBlock block = random_block(stream, first / 4);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(random_word(stream, first + i), block.word[i]);
}

TEST(Dropout, ThresholdIsTheShareOfAllWords) {
  EXPECT_EQ(dropout_threshold(0.0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000u);
  EXPECT_EQ(dropout_threshold(0.25), 0x40000000u);
  EXPECT_EQ(dropout_threshold(0.99999999999), 0xffffffffu);
}

HostTensor ones(std::int64_t count) {
  HostTensor x(TensorType{DType::float32, {count}});
  for (float& v : x.as<float>()) v = 1;
  return x;
}

// The counts are binomial: they exceed four standard deviations by chance once in 16,000 times, and
// the key is fixed.
TEST(Dropout, KeepsTheRightShareAndTheMean) {
  constexpr std::int64_t count = 100003;
  for (const double ratio : {0.1, 0.5, 0.8}) {
    const std::vector<HostTensor> inputs{ones(count)};
    const Graph graph = single_node("Dropout", inputs, {{"ratio", ratio}});
    each_kernel(graph, [&](const Kernel& kernel) {
      const std::vector<HostTensor> y = run_node(kernel, graph, graph.nodes[0], inputs);
      std::int64_t kept = 0, runs = 0;
      const auto mask = y[1].as<bool>();
      for (std::size_t i = 0; i < mask.size(); ++i) {
        kept += mask[i];
        runs += i > 0 && mask[i] == mask[i - 1];
        ASSERT_FLOAT_EQ(y[0].as<float>()[i], mask[i] ? static_cast<float>(1 / (1 - ratio)) : 0.0f);
      }
      const double n = count, p = 1 - ratio, same = p * p + (1 - p) * (1 - p);
      EXPECT_NEAR(kept, n * p, 4 * std::sqrt(n * p * ratio));
      // Neighbours are independent: they agree with probability p^2 + (1 - p)^2.
      EXPECT_NEAR(runs, n * same, 8 * std::sqrt(n * same * (1 - same)));
    });
  }
}

TEST(Dropout, RepeatsForEqualKeysOnly) {
  const std::vector<HostTensor> inputs{ones(1001)};
  const Graph graph = single_node("Dropout", inputs, {}, "block.0");
  const Graph other_path = single_node("Dropout", inputs, {}, "block.1");
  // The mask by the specification, element by element.
  const auto mask_of = [](StepContext c, const char* path) {
    std::vector<bool> mask;
    for (std::uint64_t i = 0; i < 1001; ++i) {
      const std::uint64_t stream = random_stream(c.seed, c.step, c.micro_batch, hash_of_path(path));
      mask.push_back(random_word(stream, i) >= dropout_threshold(0.5));
    }
    return mask;
  };
  each_kernel(graph, [&](const Kernel& kernel) {
    const auto run = [&](const Graph& g, StepContext context) {
      const HostTensor mask = run_in_context(kernel, g, inputs, context)[1];
      return std::vector<bool>(mask.as<bool>().begin(), mask.as<bool>().end());
    };
    const StepContext context{.seed = 5, .step = 2, .micro_batch = 1};
    const std::vector<bool> mask = run(graph, context);
    EXPECT_EQ(mask, mask_of(context, "block.0"));
    EXPECT_EQ(mask, run(graph, context));
    EXPECT_NE(mask, run(other_path, context));
    EXPECT_NE(mask, run(graph, {.seed = 6, .step = 2, .micro_batch = 1}));
    EXPECT_NE(mask, run(graph, {.seed = 5, .step = 3, .micro_batch = 1}));
    EXPECT_NE(mask, run(graph, {.seed = 5, .step = 2, .micro_batch = 0}));
  });
}

// Three ranks split 7 samples along axis 1: each draws its part of the mask that one process draws.
TEST(Dropout, RanksDrawTheirPartOfTheMask) {
  constexpr std::int64_t outer = 3, all = 7, each = 2, inner = 5;
  const auto mask_of = [&](std::int64_t samples, std::int64_t first, const Ints& attribute,
                           const Kernel& kernel) {
    const std::vector<HostTensor> x{
        HostTensor(TensorType{DType::float32, {outer, samples * each, inner}})};
    const Graph graph = single_node("Dropout", x, {{"samples", attribute}}, "drop");
    StepContext context{.seed = 5, .step = 2};
    context.first_sample = static_cast<std::uint64_t>(first);
    return run_in_context(kernel, graph, x, context)[1];
  };
  const std::vector<HostTensor> any{HostTensor(TensorType{DType::float32, {1}})};
  each_kernel(single_node("Dropout", any, {}), [&](const Kernel& kernel) {
    const HostTensor whole = mask_of(all, 0, {}, kernel);
    for (const SampleShare share : {SampleShare{0, 3}, SampleShare{3, 2}, SampleShare{5, 2}}) {
      const HostTensor own = mask_of(share.count, share.first, {1, each, all * each}, kernel);
      for (std::int64_t o = 0; o < outer; ++o) {
        const std::int64_t row = each * inner;
        const auto* part = own.as<bool>().data() + o * share.count * row;
        EXPECT_TRUE(std::equal(part, part + share.count * row,
                               whole.as<bool>().data() + (o * all + share.first) * row))
            << share.first;
      }
    }
  });
}

// With dy = 1 and x = 1, dx of y = dropout(x) equals y: the same elements are kept.
TEST(Dropout, GradientUsesTheMaskOfTheForward) {
  GraphBuilder g(operator_set());
  const ValueId x = g.input("x", {DType::float32, {64}});
  g.set_scope({"drop"});
  const ValueId y = g.node("Dropout", {x}, {{"ratio", 0.25}})[0];
  const ValueId dy = g.filled(1, g.type(y));
  const std::vector<GradientSeed> seeds{{y, dy}};
  const std::vector<ValueId> wanted{x};
  const ValueId dx = add_gradients(g, seeds, wanted)[0];
  const std::vector<HostTensor> results = evaluate(g.graph(), {{"x", ones(64)}}, {y, dx});
  EXPECT_EQ(compare(results[1], results[0], 0), "");
  EXPECT_NE(compare(results[0], ones(64), 0.1), "");
}

}  // namespace
}  // namespace tandem::testing
