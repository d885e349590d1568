// Tables whose optimizer states a policy shards as flat parts: what does not fit is refused by
// name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/training/ranks/graph_training.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 80 kB: those below 4 KiB stay whole.
Graph looked_up(const OperatorSet& operators, std::int64_t samples) {
  GraphBuilder b(operators);
  const ValueId ids = b.input("ids", {DType::int64, {samples}});
  b.set_scope({"table", Phase::forward, {}});
  b.output("y", b.add_node("Gather", {b.state(sine_parameter("table.weight", {5000, 4})), ids},
                           {{"axis", std::int64_t{0}}}));
  return b.finish();
}

std::string refusal(std::vector<std::string> keys, Sharding sharding) {
  static const OperatorSet operators = all_operators();
  GraphTraining of{.keys = std::move(keys),
                   .outputs = 4,
                   .forward = looked_up,
                   .shards = {{"table.weight", sharding}}};
  try {
    training_graph(operators, config_of(of), of, MicroBatchKind::whole, {0, 2});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

const std::string adam = "optimizer.kind=adam", adagrad = "optimizer.kind=adagrad",
                  lazy = "optimizer.kind=lazy_adam",
                  split = R"(parameters.storage=[{at="table:weight", kind="split_bfloat16"}])",
                  fixed = R"(parameters.fixed_rows=[{at="table:weight", rows=[0]}])";

TEST(StateTables, WhatFlatPartsCannotHold) {
  for (const Sharding sharding : {Sharding::state, Sharding::state_and_gradient}) {
    EXPECT_EQ(refusal({adam}, sharding), "");
    EXPECT_THAT(refusal({adagrad, split}, sharding),
                AllOf(HasSubstr("table:weight"), HasSubstr("a table with split storage"),
                      HasSubstr("shard = \"rows\"")));
    EXPECT_THAT(refusal({adam, fixed}, sharding),
                AllOf(HasSubstr("table:weight"), HasSubstr("a table with fixed rows")));
    EXPECT_THAT(refusal({lazy}, sharding),
                AllOf(HasSubstr("table:weight"), HasSubstr("updates single rows")));
  }
}

// Rows and whole tables have both.
TEST(StateTables, RowsAndWholeTablesHoldThem) {
  for (const Sharding sharding : {Sharding::rows, Sharding::table}) {
    EXPECT_EQ(refusal({adagrad, split}, sharding), "");
    EXPECT_EQ(refusal({adam, fixed}, sharding), "");
    EXPECT_EQ(refusal({lazy}, sharding), "");
  }
}

}  // namespace
}  // namespace tandem::testing
