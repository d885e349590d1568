// The policy's `shard`: what ranks can shard, and what they cannot.
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
using testing::rules;

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
  // A bias that the same rule covers stays whole, and its reason says why.
  const ExplainedAttribute& bias = of_bias.attributes.back();
  EXPECT_EQ(bias.value, "whole");
  EXPECT_THAT(bias.reason->text, HasSubstr("each rank adds its part"));
}

TEST(Shard, ColumnsOfTables) {
  const ResolvedPolicy policy =
      resolve_text(rules("{ at = \"{embed,layers.0}.**\", shard = \"columns\" },\n"));
  EXPECT_THAT(shardings_of(policy), ElementsAre(Pair("embed.weight", Sharding::columns),
                                                Pair("layers.0.weight", Sharding::columns)));
  EXPECT_EQ(explain(policy, "embed:weight").attributes.back().value, "columns");
  EXPECT_THAT(
      only_error(rules("{ at = \"embed:weight\", shard = \"columns\", cache = \"1KiB\" },\n")),
      HasSubstr("a table of which a device caches rows"));
}

// A row of a table with three axes is not a row of columns.
TEST(Shard, ATableThatIsNoMatrixHasNoColumns) {
  const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  State state;
  state.name = "cubes.weight";
  state.path = "cubes:weight";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {6, 2, 4}});
  const ValueId table = b.state(std::move(state));
  const ValueId ids = b.input("ids", {DType::int64, {5}});
  b.set_scope({"cubes.Gather", Phase::forward, {}});
  b.output("y", b.add_node("Gather", {table, ids}, {{"axis", std::int64_t{0}}}));
  const Graph graph = b.finish();
  try {
    resolve(
        parse_policy("policy = 1\n" + rules("{ at = \"cubes:weight\", shard = \"columns\" },\n"),
                     "policy.toml"),
        graph);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it is no matrix"));
    EXPECT_THAT(error.what(), HasSubstr("shard = \"whole\""));
  }
}

TEST(Shard, WhatHasNeitherRowsNorColumnsToShareOut) {
  EXPECT_EQ(
      only_error(rules("{ at = \"layers.0:bias\", shard = \"rows\" },\n")),
      "3:33 the rows of this parameter cannot be sharded over the ranks: it is no matrix (let the "
      "selector leave it out, or add { at = \"layers.0:bias\", shard = \"state\" } after "
      "it)");
  EXPECT_THAT(only_error(rules("{ at = \"embed:weight\", shard = \"rows\", cache = \"1KiB\" },\n")),
              HasSubstr("a table of which a device caches rows"));
}

TEST(Shard, WholeTablesAndGradients) {
  const ResolvedPolicy policy =
      resolve_text(rules("{ at = \"**\", shard = \"state+gradient\" },\n"
                         "{ at = \"embed.**\", shard = \"table\" },\n"
                         "{ at = \"layers.**\", shard = \"state\" },\n"
                         "{ at = \"layers.{1,10}.**\", shard = \"whole\" },\n"));
  EXPECT_THAT(shardings_of(policy), ElementsAre(Pair("embed.weight", Sharding::table),
                                                Pair("head.weight", Sharding::state_and_gradient),
                                                Pair("layers.0.bias", Sharding::state),
                                                Pair("layers.0.weight", Sharding::state)));
  EXPECT_EQ(explain(policy, "embed:weight").attributes.back().value, "table");
  EXPECT_EQ(explain(policy, "head:weight").attributes.back().value, "state+gradient");
  EXPECT_EQ(only_error(rules("{ at = \"head:weight\", shard = \"table\" },\n")),
            "3:31 this parameter cannot be on one rank as a whole table: it is no table that only "
            "lookups by ids read (let the selector leave it out, or add { at = \"head:weight\", "
            "shard = \"state\" } after it)");
  EXPECT_THAT(
      only_error(rules("{ at = \"embed:weight\", shard = \"table\", cache = \"1KiB\" },\n")),
      HasSubstr("a table of which a device caches rows"));
}

// q, k and v of [in, out], o of [out, in] with a bias; a perceptron's matrix in addition.
Graph attending(const OperatorSet& operators, bool as_one_weight = false) {
  constexpr std::int64_t samples = 2, tokens = 3, width = 8, heads = 4;
  GraphBuilder b(operators);
  const auto parameter = [&](const std::string& layer, const std::string& name,
                             const Shape& shape) {
    State state;
    state.name = layer + "." + name;
    state.path = layer + ":" + name;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, shape});
    return b.state(std::move(state));
  };
  const auto product = [&](const std::string& name, ValueId x, std::int64_t out) {
    b.set_scope({"block." + name, Phase::forward, {}});
    const std::int64_t in = b.shape(x).back();
    return b.matmul(x, parameter("block." + name, "weight", {in, out}));
  };
  const auto by_heads = [&](ValueId x) {
    return b.transpose(b.reshape(x, {samples, tokens, heads, width / heads}), {0, 2, 1, 3});
  };
  const ValueId x = b.input("x", {DType::float32, {samples, tokens, width}});
  std::vector<ValueId> parts;
  if (as_one_weight) {
    const ValueId all = product("qkv", x, 3 * width);
    for (std::int64_t i = 0; i < 3; ++i) {
      parts.push_back(by_heads(b.add_node("Slice", {all},
                                          {{"starts", Ints{0, 0, i * width}},
                                           {"sizes", Ints{samples, tokens, width}},
                                           {"steps", Ints{1, 1, 1}}})));
    }
  } else {
    for (const char* name : {"q", "k", "v"}) parts.push_back(by_heads(product(name, x, width)));
  }
  b.set_scope({"block.attention", Phase::forward, {}});
  ValueId y = b.add_node("Attention", parts, {{"scale", 0.5}});
  y = b.reshape(b.transpose(y, {0, 2, 1, 3}), {samples, tokens, width});
  b.set_scope({"block.o", Phase::forward, {}});
  y = b.matmul(y, b.transpose(parameter("block.o", "weight", {width, width}), {1, 0}));
  y = b.add(y, parameter("block.o", "bias", {width}));
  b.set_scope({"norm", Phase::forward, {}});
  y = b.add_node("LayerNormalization",
                 {y, parameter("norm", "weight", {width}), parameter("norm", "bias", {width})},
                 {{"axis", std::int64_t{2}}});
  b.set_scope({"up", Phase::forward, {}});
  b.output("y", b.matmul(y, parameter("up", "weight", {width, width})));
  return b.finish();
}

Policy heads_of(const std::string& at) {
  return parse_policy("policy = 1\n" + rules("{ at = \"" + at + "\", shard = \"heads\" },\n"),
                      "policy.toml");
}

TEST(Shard, HeadsOfAnAttentionBlock) {
  const OperatorSet operators = all_operators();
  const ResolvedPolicy policy = resolve(heads_of("block.**"), attending(operators));
  EXPECT_THAT(shardings_of(policy), ElementsAre(Pair("block.k.weight", Sharding::heads),
                                                Pair("block.o.weight", Sharding::heads),
                                                Pair("block.q.weight", Sharding::heads),
                                                Pair("block.v.weight", Sharding::heads)));
  EXPECT_THAT(explain(policy, "block.o:bias").attributes.back().reason->text,
              HasSubstr("each rank adds its part"));
}

TEST(Shard, WhatHasNoHeads) {
  const OperatorSet operators = all_operators();
  const auto refused = [&](const std::string& at, const Graph& graph) -> std::string {
    try {
      resolve(heads_of(at), graph);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refused("up:weight", attending(operators)),
              HasSubstr("up (MatMul) neither makes queries, keys or values of attention"));
  EXPECT_THAT(refused("block.qkv:weight", attending(operators, true)),
              HasSubstr("one weight of all three has no whole heads"));
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
              "there is no optimizer's state to shard: this is not trained");
  }
}

}  // namespace
}  // namespace tandem
