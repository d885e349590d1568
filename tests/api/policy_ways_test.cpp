// What `policy auto --ranks` chooses using only the cost model: for networks that are never run, on
// eight ranks connected by 10 Gb/s.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/auto/find.h"
#include "tests/api/never_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::Forward;
using ::testing::HasSubstr;
using testing::Layers;
using testing::NeverRun;
using ::testing::Not;

constexpr int planned_ranks = 8;

// A body of 4 MiB and a head of 4 GiB, whose gradient would dominate the exchanges.
Graph large_head(const OperatorSet& operators, std::int64_t samples) {
  Layers l(operators);
  ValueId x = l.g.input("x", {DType::float32, {samples, 512}});
  x = l.relu("body", l.product("body", x, 2048));
  l.g.output("logits", l.product("head", x, 524'288));
  return l.g.finish();
}

// The layers of He et al. 2016 for images of 32 x 32, without normalisation: 23.5 million weights.
Graph resnet50(const OperatorSet& operators, std::int64_t samples) {
  Layers l(operators);
  ValueId x = l.g.input("x", {DType::float32, {samples, 3, 32, 32}});
  x = l.relu("stem", l.convolution("stem", x, 64, 3, 1));
  constexpr std::int64_t blocks[] = {3, 4, 6, 3};
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    for (std::int64_t block = 0; block < blocks[stage]; ++block) {
      const std::string name = "stage" + std::to_string(stage) + "." + std::to_string(block);
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      ValueId y = l.relu(name + ".a", l.convolution(name + ".a", x, width, 1, 1));
      y = l.relu(name + ".b", l.convolution(name + ".b", y, width, 3, stride));
      y = l.convolution(name + ".c", y, 4 * width, 1, 1);
      if (block == 0) x = l.convolution(name + ".skip", x, 4 * width, 1, stride);
      l.g.set_scope({name + ".Add", Phase::forward, {}});
      x = l.relu(name, l.g.add(y, x));
    }
  }
  l.g.set_scope({"pool.ReduceMean", Phase::forward, {}});
  x = l.g.reduce_mean(x, {2, 3}, false);
  l.g.output("logits", l.product("fc", x, 10));
  return l.g.finish();
}

// Two tables of 25 MiB with states of 50 MiB each, and a small head.
Graph two_tables(const OperatorSet& operators, std::int64_t samples) {
  Layers l(operators);
  std::vector<ValueId> found;
  for (const std::string name : {"users", "items"}) {
    const ValueId ids = l.g.input(name + "_ids", {DType::int64, {samples}});
    const ValueId table = l.parameter(name, {100'000, 64});
    l.g.set_scope({name + ".Gather", Phase::forward, {}});
    found.push_back(l.g.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}}));
  }
  l.g.set_scope({"both.Concat", Phase::forward, {}});
  const ValueId both = l.g.add_node("Concat", found, {{"axis", std::int64_t{1}}});
  l.g.output("logits", l.product("head", both, 10));
  return l.g.finish();
}

Graph attention_of(const OperatorSet& operators, std::int64_t samples, std::int64_t heads) {
  constexpr std::int64_t tokens = 4, width = 1024;
  Layers l(operators);
  ValueId x = l.g.input("x", {DType::float32, {samples, tokens, width}});
  std::vector<ValueId> parts;
  for (const std::string name : {"block.q", "block.k", "block.v"}) {
    const ValueId made =
        l.g.reshape(l.product(name, x, width), {samples, tokens, heads, width / heads});
    parts.push_back(l.g.transpose(made, {0, 2, 1, 3}));
  }
  l.g.set_scope({"block.attention", Phase::forward, {}});
  x = l.g.transpose(l.g.add_node("Attention", parts, {{"scale", 0.25}}), {0, 2, 1, 3});
  x = l.product("block.o", l.g.reshape(x, {samples, tokens, width}), width);
  l.g.set_scope({"pool.ReduceMean", Phase::forward, {}});
  x = l.g.reduce_mean(x, {1}, false);
  l.g.output("logits", l.product("head", x, 10));
  return l.g.finish();
}

FoundPlacement found_for(const Forward& forward, std::int64_t batch,
                         std::map<std::string, std::uint64_t> budgets = {}) {
  NeverRun model(forward, batch, planned_ranks, {DType::int64, {}});
  AutoCase of(model, {"cpu"}, std::move(budgets), 0);
  of.check_devices();
  return find_placement(of, planned_ranks);
}

AutoPlan plan_of(const FoundPlacement& found, const std::string& name) {
  for (const auto& [known, plan] : found.shardings) {
    if (known == name) return plan;
  }
  ADD_FAILURE() << "no " << name;
  return AutoPlan{};
}

TEST(PolicyWays, AHeadIsSplitWhereItsGradientWouldBeMostOfAStep) {
  const FoundPlacement found = found_for(large_head, 64);
  EXPECT_THAT(found.sharding, HasSubstr("data parallel body, split head:weight"));
  const std::string text = found_text(found, "policy.toml", true);
  EXPECT_THAT(text, AllOf(HasSubstr("shard = \"columns\""), HasSubstr("head:weight"),
                          HasSubstr("gradients of 4.00 GiB are not summed over ranks")));
  const AutoPlan plain = plan_of(found, "data parallel"),
                 split = plan_of(found, "data parallel body, split head:weight");
  ASSERT_TRUE(split.score.possible);
  EXPECT_LT(split.exchanged, 0.01 * plain.exchanged);
  EXPECT_LT(split.score.seconds, plain.score.seconds);
  // Weight, gradient and two moments of the head shrink to an eighth.
  EXPECT_LT(split.devices[0].memory.peak, plain.devices[0].memory.peak / 4);
}

// Every way is printed with its time, its memory and what it exchanges.
TEST(PolicyWays, ConvolutionsAreDataParallel) {
  const FoundPlacement found = found_for(resnet50, 256);
  EXPECT_EQ(found.sharding, "data parallel");
  const std::string text = found_text(found, "policy.toml", true);
  EXPECT_THAT(text, AllOf(HasSubstr("ranks     8: data parallel\n"),
                          HasSubstr("\n  data parallel, sharded optimizer states: "),
                          HasSubstr("\n  data parallel, sharded optimizer states and gradients: "),
                          HasSubstr(" ms are waited for")));
  EXPECT_THAT(text, Not(HasSubstr("shard = ")));
  // Every gradient is exchanged once, and the loss.
  EXPECT_NEAR(plan_of(found, "data parallel").exchanged, 4 * 23'467'712.0, 1e3);
}

// Adam updates every row: all rows of both tables, of one of them, or an eighth of each.
TEST(PolicyWays, TablesAreSharedOut) {
  const FoundPlacement found = found_for(two_tables, 1024);
  EXPECT_THAT(found.sharding, HasSubstr("tables by"));
  const auto seconds = [&](const char* name) {
    EXPECT_TRUE(plan_of(found, name).score.possible) << name;
    return plan_of(found, name).score.seconds;
  };
  const double plain = seconds("data parallel"),
               whole = seconds("data parallel, whole tables with one rank each"),
               rows = seconds("data parallel, tables by rows"),
               columns = seconds("data parallel, tables by columns");
  EXPECT_LT(whole, 0.7 * plain);
  EXPECT_LT(rows, 0.5 * whole);
  EXPECT_LT(columns, 0.5 * whole);
  const auto peak = [&](const char* name) { return plan_of(found, name).devices[0].memory.peak; };
  EXPECT_LT(peak("data parallel, tables by columns"), peak("data parallel") / 4);
}

// A way that the model excludes is printed with the reason.
TEST(PolicyWays, AttentionByHeadsWhereRanksDivideThem) {
  const std::string name = "data parallel body, attention by heads";
  const auto with_heads = [&](std::int64_t heads) {
    return found_for([=](const OperatorSet& operators,
                         std::int64_t samples) { return attention_of(operators, samples, heads); },
                     64);
  };
  const FoundPlacement eight = with_heads(8);
  const AutoPlan by_heads = plan_of(eight, name), plain = plan_of(eight, "data parallel");
  ASSERT_TRUE(by_heads.score.possible) << by_heads.refusal;
  EXPECT_LT(by_heads.devices[0].memory.peak, plain.devices[0].memory.peak);
  const FoundPlacement four = with_heads(4);
  EXPECT_FALSE(plan_of(four, name).score.possible);
  EXPECT_THAT(found_text(four, "policy.toml", true),
              HasSubstr("\n  " + name + ": left out: block."));
  EXPECT_THAT(plan_of(four, name).refusal, HasSubstr("8 ranks do not divide the 4 heads"));
  EXPECT_THAT(found_json(four, "policy.toml", true), HasSubstr("8 ranks do not divide"));
}

// What does not fit as a whole is sharded, in the fastest way that fits.
TEST(PolicyWays, ABudgetSharesOutStatesAndGradients) {
  const FoundPlacement plain = found_for(resnet50, 256);
  const auto peak = [&](const char* name) { return plan_of(plain, name).devices[0].memory.peak; };
  const std::size_t states = peak("data parallel, sharded optimizer states"),
                    gradients = peak("data parallel, sharded optimizer states and gradients");
  ASSERT_LT(states, peak("data parallel"));
  EXPECT_LE(gradients, states + states / 100);
  const FoundPlacement found = found_for(resnet50, 256, {{"cpu", states + (1u << 20)}});
  const auto seconds = [&](const char* name) { return plan_of(plain, name).score.seconds; };
  const char* names[] = {"data parallel, sharded optimizer states",
                         "data parallel, sharded optimizer states and gradients"};
  EXPECT_EQ(found.sharding, names[seconds(names[1]) < seconds(names[0]) ? 1 : 0]);
}

}  // namespace
}  // namespace tandem
