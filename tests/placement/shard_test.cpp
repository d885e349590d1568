// The policy's `shard`: what ranks share out, and what they cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "placement/report/explain.h"
#include "tests/placement/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::errors_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::only_error;
using ::testing::Pair;
using testing::resolve_text;

std::string rules(const std::string& lines) { return "rules = [\n" + lines + "]\n"; }

TEST(Shard, LaterLinesWin) {
  const ResolvedPolicy policy =
      resolve_text(rules("{ at = \"**\", shard = \"state\" },\n"
                         "{ at = \"embed.**\", shard = \"rows\" },\n"
                         "{ at = \"layers.**\", shard = \"whole\" },\n"));
  EXPECT_THAT(shardings_of(policy), ElementsAre(Pair("embed.weight", Sharding::rows),
                                                Pair("head.weight", Sharding::state)));
  EXPECT_THAT(policy.warnings, IsEmpty());
  const Explained explained = explain(policy, "embed:weight");
  const ExplainedAttribute& shard = explained.attributes.back();
  EXPECT_EQ(shard.name, "shard");
  EXPECT_EQ(shard.value, "rows");
  EXPECT_EQ(shard.reason->text, "policy.toml:4, where several ranks train");
  EXPECT_EQ(shard.reason->overridden, std::vector<int>{0});
}

TEST(Shard, NothingIsSharedOutWithoutARule) {
  const ResolvedPolicy policy = resolve_text("");
  EXPECT_THAT(shardings_of(policy), IsEmpty());
  EXPECT_EQ(name_of(policy.find_parameter("embed.weight")->shard.value), "whole");
}

TEST(Shard, ColumnsAndRowsOfMatrices) {
  const ResolvedPolicy policy =
      resolve_text(rules("{ at = \"layers.0.**\", shard = \"columns\" },\n"
                         "{ at = \"layers.1.**\", shard = \"rows\" },\n"
                         "{ at = \"head:weight\", shard = \"rows\" },\n"));
  EXPECT_THAT(shardings_of(policy),
              ElementsAre(Pair("head.weight", Sharding::rows),  // read transposed
                          Pair("layers.0.weight", Sharding::columns),
                          Pair("layers.1.weight", Sharding::rows)));
  const Explained of_matrix = explain(policy, "layers.0:weight"),
                  of_bias = explain(policy, "layers.0:bias");
  EXPECT_EQ(of_matrix.attributes.back().value, "columns");
  // A bias that the same rule covers stays whole, and says so.
  const ExplainedAttribute& bias = of_bias.attributes.back();
  EXPECT_EQ(bias.value, "whole");
  EXPECT_THAT(bias.reason->text, HasSubstr("each rank adds its part"));
}

TEST(Shard, WhatHasNeitherRowsNorColumnsToShareOut) {
  EXPECT_EQ(only_error(rules("{ at = \"layers.0:bias\", shard = \"rows\" },\n")),
            "3:33 ranks cannot share out the rows of this parameter: it is no matrix (let the "
            "selector leave it out, or add { at = \"layers.0:bias\", shard = \"state\" } behind "
            "it)");
  EXPECT_EQ(only_error(rules("{ at = \"embed:weight\", shard = \"columns\" },\n")),
            "3:32 ranks cannot share out the columns of this parameter: lookups by ids read it: "
            "columns of tables come with a later version (let the selector leave it out, or add { "
            "at = \"embed:weight\", shard = \"rows\" } behind it)");
  EXPECT_THAT(only_error(rules("{ at = \"embed:weight\", shard = \"rows\", cache = \"1KiB\" },\n")),
              HasSubstr("a table of which a device caches rows"));
}

// A matrix that lookups read as a table, and a product transposed: a tied head.
TEST(Shard, TiedTablesStayWhole) {
  const OperatorSet operators = all_operators();
  GraphBuilder b(operators, testing::forward_graph(operators));
  const ValueId table = b.graph().find_state("embed.weight")->initial;
  b.set_scope({"tied.Transpose", Phase::forward, {}});
  const ValueId weight = b.transpose(table, {1, 0});
  b.set_scope({"tied.MatMul", Phase::forward, {}});
  b.output("tied", b.matmul(b.graph().find_value("hidden"), weight));
  const Graph graph = b.finish();
  for (const std::string word : {"rows", "columns"}) {
    const Policy policy = parse_policy(
        "policy = 1\n" + rules("{ at = \"embed:weight\", shard = \"" + word + "\" },\n"),
        "policy.toml");
    try {
      resolve(policy, graph);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("embed.Gather (Gather) reads it, which is no product"));
    }
  }
}

TEST(Shard, WhatIsNotTrainedHasNoStates) {
  Graph graph = testing::shared_graph();
  for (State& state : graph.states) {
    if (state.name == "head.weight") state.trainable = false;
  }
  const auto resolved = [&](const std::string& at) {
    const Policy policy = parse_policy(
        "policy = 1\n" + rules("{ at = \"" + at + "\", shard = \"state\" },\n"), "policy.toml");
    return resolve(policy, graph);
  };
  const ResolvedPolicy all = resolved("**");
  EXPECT_EQ(shardings_of(all).count("head.weight"), 0u);
  EXPECT_EQ(shardings_of(all).count("embed.weight"), 1u);
  try {
    resolved("head:weight");
    FAIL();
  } catch (const Error& error) {
    ASSERT_EQ(error.diagnostics().size(), 1u);
    EXPECT_EQ(error.diagnostics()[0].path, "head:weight");
    EXPECT_EQ(error.diagnostics()[0].message,
              "there is no optimizer's state to share out: this is not trained");
  }
}

}  // namespace
}  // namespace tandem
