// The ways that `policy auto --ranks` compares, which depend only on facts of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "placement/auto/shardings.h"
#include "tests/placement/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of_ways(const std::vector<ShardWay>& ways) {
  std::vector<std::string> names;
  for (const ShardWay& way : ways) names.push_back(way.name);
  return names;
}

std::vector<std::string> texts_of(const ShardWay& way) {
  std::vector<std::string> texts;
  for (const PolicyRule& rule : way.rules) texts.push_back(to_toml(rule));
  return texts;
}

// Each of three layers has more than a quarter of all that is not a table; the head and the biases
// have less.
TEST(ShardWays, LargeMatricesMayBeSplit) {
  const std::vector<ShardWay> ways = shard_ways(testing::resolve_text(""), testing::shared_graph());
  const std::string split =
      "data parallel body, split layers.0:weight and layers.1:weight and layers.10:weight";
  EXPECT_THAT(names_of_ways(ways),
              ElementsAre("data parallel", "data parallel, sharded optimizer states",
                          "data parallel, sharded optimizer states and gradients",
                          "data parallel, tables by rows", "data parallel, tables by columns",
                          "data parallel, tables by rows and sharded optimizer states", split,
                          split + ", sharded optimizer states", split + ", tables by rows"));
  EXPECT_THAT(texts_of(ways[4]), ElementsAre("{ at = \"embed:weight\", shard = \"columns\" }"));
  EXPECT_THAT(texts_of(ways[6]), ElementsAre("{ at = \"layers.0:weight\", shard = \"columns\" }",
                                             "{ at = \"layers.1:weight\", shard = \"columns\" }",
                                             "{ at = \"layers.10:weight\", shard = \"columns\" }"));
  EXPECT_THAT(ways[6].why, HasSubstr("gradients of 768 B are not summed over ranks"));
  // A policy accepts them.
  std::string text = "rules = [\n";
  for (const PolicyRule& rule : ways[6].rules) text += to_toml(rule) + ",\n";
  EXPECT_THAT(testing::errors_of(text + "]\n"), ::testing::IsEmpty());
  EXPECT_THAT(texts_of(ways[2]),
              ElementsAre("{ at = \"**\", min = \"4KiB\", shard = \"state+gradient\" }",
                          "{ at = \"embed:weight\", shard = \"whole\" }"));
}

TEST(ShardWays, WhatAPolicySaysAlreadyStays) {
  const ResolvedPolicy resolved = testing::resolve_text(
      "rules = [\n{ at = \"layers.**\", shard = \"whole\" },\n{ at = \"embed.**\", shard = "
      "\"rows\" "
      "},\n]\n");
  const std::vector<ShardWay> ways = shard_ways(resolved, testing::shared_graph());
  // The head is all that is left; it is read transposed.
  EXPECT_THAT(names_of_ways(ways),
              ElementsAre("data parallel", "data parallel, sharded optimizer states",
                          "data parallel, sharded optimizer states and gradients",
                          "data parallel body, split head:weight",
                          "data parallel body, split head:weight, sharded optimizer states"));
  EXPECT_THAT(texts_of(ways[3]), ElementsAre("{ at = \"head:weight\", shard = \"rows\" }"));
}

std::vector<ShardWay> ways_of(const Graph& graph) {
  return shard_ways(resolve(parse_policy("policy = 1\n", "policy.toml"), graph), graph);
}

const ShardWay& way_of(const std::vector<ShardWay>& ways, const std::string& name) {
  static const ShardWay none;
  for (const ShardWay& way : ways) {
    if (way.name == name) return way;
  }
  ADD_FAILURE() << "no " << name;
  return none;
}

// A table of few bytes, or of one column, is sharded by rows while another one is by columns.
TEST(ShardWays, SeveralTables) {
  const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const ValueId ids = b.input("ids", {DType::int64, {4}});
  const auto looked_up = [&](const std::string& name, const Shape& shape) {
    b.set_scope({name + ".Gather", Phase::forward, {}});
    return b.add_node("Gather", {testing::add_weight(b, name, shape), ids},
                      {{"axis", std::int64_t{0}}});
  };
  b.output("wide", looked_up("wide", {100, 1}));
  b.output("deep", looked_up("deep", {100, 64}));
  b.output("tall", looked_up("tall", {2000, 1}));
  const std::vector<ShardWay> ways = ways_of(b.finish());
  EXPECT_THAT(texts_of(way_of(ways, "data parallel, whole tables with one rank each")),
              ::testing::UnorderedElementsAre("{ at = \"wide:weight\", shard = \"table\" }",
                                              "{ at = \"deep:weight\", shard = \"table\" }",
                                              "{ at = \"tall:weight\", shard = \"table\" }"));
  EXPECT_THAT(texts_of(way_of(ways, "data parallel, large tables by columns, the others by rows")),
              ::testing::UnorderedElementsAre("{ at = \"wide:weight\", shard = \"rows\" }",
                                              "{ at = \"deep:weight\", shard = \"columns\" }",
                                              "{ at = \"tall:weight\", shard = \"rows\" }"));
}

TEST(ShardWays, AttentionByHeads) {
  const OperatorSet operators = all_operators();
  constexpr std::int64_t samples = 2, tokens = 3, width = 8, heads = 4;
  GraphBuilder b(operators);
  const auto product = [&](const std::string& name, ValueId x, std::int64_t out) {
    b.set_scope({name, Phase::forward, {}});
    return b.matmul(x, testing::add_weight(b, name, {b.shape(x).back(), out}));
  };
  const ValueId x = b.input("x", {DType::float32, {samples, tokens, width}});
  std::vector<ValueId> parts;
  for (const char* name : {"q", "k", "v"}) {
    const ValueId made = product(name, x, width);
    parts.push_back(
        b.transpose(b.reshape(made, {samples, tokens, heads, width / heads}), {0, 2, 1, 3}));
  }
  b.set_scope({"attention", Phase::forward, {}});
  const ValueId y = b.transpose(b.add_node("Attention", parts, {{"scale", 0.5}}), {0, 2, 1, 3});
  const ValueId made = product("o", b.reshape(y, {samples, tokens, width}), width);
  b.output("y", product("up", made, 2 * width));
  const Graph graph = b.finish();
  const std::vector<ShardWay> ways = ways_of(graph);
  const ShardWay& by_heads = way_of(ways, "data parallel body, attention by heads");
  EXPECT_THAT(texts_of(by_heads),
              ::testing::UnorderedElementsAre("{ at = \"q:weight\", shard = \"heads\" }",
                                              "{ at = \"k:weight\", shard = \"heads\" }",
                                              "{ at = \"v:weight\", shard = \"heads\" }",
                                              "{ at = \"o:weight\", shard = \"heads\" }"));
  EXPECT_THAT(by_heads.why, HasSubstr("gradients of 1.0 KiB are not summed"));
}

}  // namespace
}  // namespace tandem
