// What `policy auto --ranks` compares: which ways there are, by facts of the model alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/auto/shardings.h"
#include "tests/placement/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<ShardWay>& ways) {
  std::vector<std::string> names;
  for (const ShardWay& way : ways) names.push_back(way.name);
  return names;
}

// Each of three layers has more than a quarter of what is no table; the head and the biases do not.
TEST(ShardWays, LargeMatricesMayBeSplit) {
  const std::vector<ShardWay> ways = shard_ways(testing::resolve_text(""), testing::shared_graph());
  const std::string split =
      "data parallel body, split layers.0:weight and layers.1:weight and layers.10:weight";
  EXPECT_THAT(names_of(ways),
              ElementsAre("data parallel", "data parallel, optimizer states shared out",
                          "data parallel, optimizer states and gradients shared out",
                          "data parallel, tables by rows",
                          "data parallel, tables by rows and optimizer states shared out", split,
                          split + ", optimizer states shared out", split + ", tables by rows"));
  EXPECT_THAT(ways[5].rules, ElementsAre("{ at = \"layers.0:weight\", shard = \"columns\" }",
                                         "{ at = \"layers.1:weight\", shard = \"columns\" }",
                                         "{ at = \"layers.10:weight\", shard = \"columns\" }"));
  EXPECT_THAT(ways[5].why, HasSubstr("gradients of 768 B are not summed over ranks"));
  // A policy takes them.
  std::string text = "rules = [\n";
  for (const std::string& rule : ways[5].rules) text += rule + ",\n";
  EXPECT_THAT(testing::errors_of(text + "]\n"), ::testing::IsEmpty());
  EXPECT_THAT(ways[2].rules,
              ElementsAre("{ at = \"**\", min = \"64KiB\", shard = \"state+gradient\" }",
                          "{ at = \"embed:weight\", shard = \"whole\" }"));
}

TEST(ShardWays, WhatAPolicySaysAlreadyStays) {
  const ResolvedPolicy resolved = testing::resolve_text(
      "rules = [\n{ at = \"layers.**\", shard = \"whole\" },\n{ at = \"embed.**\", shard = "
      "\"rows\" "
      "},\n]\n");
  const std::vector<ShardWay> ways = shard_ways(resolved, testing::shared_graph());
  // The head is all that is left; it is read transposed.
  EXPECT_THAT(names_of(ways),
              ElementsAre("data parallel", "data parallel, optimizer states shared out",
                          "data parallel, optimizer states and gradients shared out",
                          "data parallel body, split head:weight",
                          "data parallel body, split head:weight, optimizer states shared out"));
  EXPECT_THAT(ways[3].rules, ElementsAre("{ at = \"head:weight\", shard = \"rows\" }"));
}

}  // namespace
}  // namespace tandem
