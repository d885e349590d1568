// How long ranks wait for each other over a link of 10 Gb/s, by the virtual clock: two ranks with a
// device of 100 GFLOP/s each, which is one or two cores.
#include <gtest/gtest.h>

#include "tests/api/never_run.h"

namespace tandem {
namespace {

using testing::Forward;
using testing::Layers;
using testing::NeverRun;

constexpr int exchanging_ranks = 2;

// 784-512-512-10.
Graph mlp(const OperatorSet& operators, std::int64_t samples) {
  Layers l(operators);
  ValueId x = l.g.input("x", {DType::float32, {samples, 784}});
  x = l.relu("first", l.product("first", x, 512));
  x = l.relu("second", l.product("second", x, 512));
  l.g.output("logits", l.product("last", x, 10));
  return l.g.finish();
}

// The blocks of He et al. 2016 for small images, with a quarter of the side length after the stem:
// 11.2 million weights.
Graph resnet18(const OperatorSet& operators, std::int64_t samples) {
  Layers l(operators);
  ValueId x = l.g.input("x", {DType::float32, {samples, 3, 32, 32}});
  x = l.relu("stem", l.convolution("stem", x, 64, 7, 4));
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < 2; ++block) {
      const std::string name = "stage" + std::to_string(stage) + "." + std::to_string(block);
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      ValueId y = l.relu(name + ".a", l.convolution(name + ".a", x, width, 3, stride));
      y = l.convolution(name + ".b", y, width, 3, 1);
      if (stride == 2) x = l.convolution(name + ".skip", x, width, 1, 2);
      l.g.set_scope({name + ".Add", Phase::forward, {}});
      x = l.relu(name, l.g.add(y, x));
    }
  }
  l.g.set_scope({"pool.ReduceMean", Phase::forward, {}});
  l.g.output("logits", l.product("fc", l.g.reduce_mean(x, {2, 3}, false), 10));
  return l.g.finish();
}

constexpr std::int64_t tokens = 128, token_classes = 65;

// Four blocks of width 256 with four heads, on vectors instead of tokens.
Graph gpt(const OperatorSet& operators, std::int64_t samples) {
  constexpr std::int64_t width = 256, heads = 4;
  Layers l(operators);
  GraphBuilder& g = l.g;
  ValueId x = g.input("x", {DType::float32, {samples, tokens, width}});
  const auto normal = [&](const std::string& name, ValueId of) {
    g.set_scope({name, Phase::forward, {}});
    return g.add_node(
        "LayerNormalization",
        {of, l.parameter(name + ".scale", {width}), l.parameter(name + ".shift", {width})},
        {{"axis", std::int64_t{2}}});
  };
  for (int block = 0; block < 4; ++block) {
    const std::string name = "block" + std::to_string(block);
    const ValueId before = normal(name + ".norm1", x);
    std::vector<ValueId> parts;
    for (const char* part : {".q", ".k", ".v"}) {
      const ValueId made = l.product(name + part, before, width);
      parts.push_back(
          g.transpose(g.reshape(made, {samples, tokens, heads, width / heads}), {0, 2, 1, 3}));
    }
    g.set_scope({name + ".attention", Phase::forward, {}});
    ValueId y = g.add_node("Attention", parts, {{"scale", 0.125}, {"causal", std::int64_t{1}}});
    y = g.reshape(g.transpose(y, {0, 2, 1, 3}), {samples, tokens, width});
    y = l.product(name + ".o", y, width);
    g.set_scope({name + ".Add", Phase::forward, {}});
    x = g.add(x, y);
    y = l.product(name + ".up", normal(name + ".norm2", x), 4 * width);
    g.set_scope({name + ".Gelu", Phase::forward, {}});
    y = l.product(name + ".down", g.add_node("Gelu", {y}), width);
    g.set_scope({name + ".Add2", Phase::forward, {}});
    x = g.add(x, y);
  }
  g.output("logits", l.product("head", normal("norm", x), token_classes));
  return g.finish();
}

/// The fraction of a step in which a rank waits for exchanges.
double exposed_part(const Forward& forward, std::int64_t samples, const TensorType& label,
                    const std::string& policy) {
  NeverRun model(forward, samples * exchanging_ranks, exchanging_ranks, label);
  RunPolicy of_text;
  of_text.policy = parse_policy("policy = 1\n" + policy, "policy.toml");
  model.replace_policy(std::move(of_text));
  const PlannedStep step = model.plan(PlannedPrograms::step);
  double exposed = 0;
  for (const PlannedExchange& exchange : step.exchanges) exposed += exchange.exposed;
  EXPECT_GT(step.exchanges.size(), 1u);
  return exposed / step.seconds;
}

const TensorType class_of_sample{DType::int64, {}}, class_of_token{DType::int64, {tokens}};
const std::string states = "rules = [ { at = \"**\", min = \"64KiB\", shard = \"state\" } ]\n";

// Gradients are summed while backward computes the next ones.
TEST(ExposedExchanges, DataParallelWaitsForAFifthOfAStepAtMost) {
  EXPECT_LE(exposed_part(resnet18, 32, class_of_sample, ""), 0.2);
  EXPECT_LE(exposed_part(gpt, 16, class_of_token, ""), 0.2);
  EXPECT_LE(exposed_part(mlp, 256, class_of_sample, ""), 0.2);
}

// The scattered half of the bytes overlaps with backward, as whole sums do; the gathered half only
// with updates.
TEST(ExposedExchanges, StatesThatAreSharedOutWaitForALittleMore) {
  EXPECT_LE(exposed_part(resnet18, 32, class_of_sample, states), 0.3);
  EXPECT_LE(exposed_part(gpt, 16, class_of_token, states), 0.2);
  EXPECT_LE(exposed_part(mlp, 256, class_of_sample, states), 0.3);
}

}  // namespace
}  // namespace tandem
