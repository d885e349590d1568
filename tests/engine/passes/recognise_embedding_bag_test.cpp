// Sums of looked-up rows become EmbeddingBag, with the same values; what only looks like one stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/graph/builder.h"
#include "engine/operators/tables/rows.h"
#include "engine/passes/pass.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class RecogniseEmbeddingBagTest : public ::testing::Test {
 protected:
  RecogniseEmbeddingBagTest() {
    State state;
    state.name = "table";
    state.kind = StateKind::parameter;
    state.start = random({10, 4}, 7);
    table_ = g_.state(std::move(state));
    ids_ = g_.input("ids", {DType::int64, {3, 5}});
    weights_ = g_.input("weights", {DType::float32, {3, 5}});
    g_.set_scope({"bag.Gather", Phase::forward, {}});
    rows_ = g_.add_node("Gather", {table_, ids_});
    g_.set_scope({"ReduceSum", Phase::forward, {}});
  }

  static HostTensor random(const Shape& shape, unsigned seed) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    HostTensor tensor(TensorType{DType::float32, shape});
    for (float& x : tensor.as<float>()) x = uniform(engine);
    return tensor;
  }
  static int count(const Graph& graph, std::string_view op) {
    return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                          [&](const Node& node) { return node.op->name == op; }));
  }
  ValueId column(ValueId x) { return g_.reshape(x, {3, 5, 1}); }
  ValueId sum(ValueId x, Ints axes = {1}) { return g_.reduce_sum(x, std::move(axes), false); }

  /// Runs all passes; the result is the same, from as many EmbeddingBags.
  void expect_bags(ValueId y, int bags) {
    g_.output("y", y);
    const Graph graph = g_.finish();
    PassContext context{operators_, {}, {}, {}};
    const Graph after = run_passes(graph, context);
    EXPECT_EQ(count(after, "EmbeddingBag"), bags) << to_text(after);
    if (bags > 0) {
      EXPECT_EQ(count(after, "Gather"), 0) << to_text(after);
      ASSERT_EQ(context.notes.size(), 1u);
      EXPECT_THAT(context.notes[0], HasSubstr("bag.Gather: EmbeddingBag"));
    }
    std::vector<std::int64_t> ids(15);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int64_t>(i * 7 % 20) - 10;
    ids[7] = ids[13] = absent_id<std::int64_t>;
    HostTensor weights = random({3, 5}, 3);
    weights.as<float>()[4] = weights.as<float>()[11] = 0;
    const std::vector<std::pair<std::string, HostTensor>> feeds{
        {"ids", HostTensor::from<std::int64_t>({3, 5}, ids)}, {"weights", weights}};
    const auto want = testing::evaluate(graph, feeds, {graph.outputs[0].value});
    const auto got = testing::evaluate(after, feeds, {after.outputs[0].value});
    EXPECT_EQ(testing::compare(got[0], want[0], 1e-6), "");
  }

  OperatorSet operators_ = all_operators();
  GraphBuilder g_{operators_};
  ValueId table_, ids_, weights_, rows_;
};

TEST_F(RecogniseEmbeddingBagTest, Sum) { expect_bags(sum(rows_), 1); }

TEST_F(RecogniseEmbeddingBagTest, MeanThatKeepsItsAxis) {
  expect_bags(g_.reduce_mean(rows_, {1}, true), 1);
}

TEST_F(RecogniseEmbeddingBagTest, Weighted) {
  expect_bags(sum(g_.mul(column(weights_), rows_)), 1);
}

TEST_F(RecogniseEmbeddingBagTest, WeightsOfPlacesAlone) {
  const ValueId place = g_.constant(HostTensor::from<float>({5, 1}, {1, 0.5f, 0.25f, 0, -1}));
  expect_bags(sum(g_.mul(rows_, place)), 1);
}

TEST_F(RecogniseEmbeddingBagTest, PaddingMultipliedAway) {
  const ValueId padding = g_.constant(HostTensor::from<std::int64_t>({}, {-3}));
  const ValueId kept = g_.add_node("Not", {g_.add_node("Equal", {ids_, padding})});
  const ValueId mask = column(g_.cast(kept, DType::float32));
  const ValueId total = g_.reduce_sum(mask, {1}, false);
  expect_bags(g_.div(sum(g_.mul(rows_, mask)), total), 1);
}

TEST_F(RecogniseEmbeddingBagTest, PaddingChosenAway) {
  const ValueId padding = g_.constant(HostTensor::from<std::int64_t>({}, {-3}));
  const ValueId padded = column(g_.add_node("Equal", {ids_, padding}));
  const ValueId zero = g_.scalar(0, DType::float32);
  expect_bags(sum(g_.add_node("Where", {padded, zero, rows_})), 1);
}

TEST_F(RecogniseEmbeddingBagTest, ChosenRowsAreKept) {
  const ValueId padding = g_.constant(HostTensor::from<std::int64_t>({}, {-3}));
  const ValueId padded = column(g_.add_node("Equal", {ids_, padding}));
  const ValueId zero = g_.scalar(0, DType::float32);
  expect_bags(sum(g_.add_node("Where", {padded, rows_, zero})), 1);
}

TEST_F(RecogniseEmbeddingBagTest, OtherAxesStay) { expect_bags(sum(rows_, {0}), 0); }
TEST_F(RecogniseEmbeddingBagTest, SeveralAxesStay) { expect_bags(sum(rows_, {1, 2}), 0); }

TEST_F(RecogniseEmbeddingBagTest, RowsThatOthersReadStay) {
  expect_bags(g_.add(sum(rows_), sum(g_.mul(rows_, rows_))), 0);
}

TEST_F(RecogniseEmbeddingBagTest, WeightsOfColumnsStay) {
  const ValueId columns = g_.constant(HostTensor::from<float>({4}, {1, 2, 3, 4}));
  expect_bags(sum(g_.mul(rows_, columns)), 0);
}

TEST_F(RecogniseEmbeddingBagTest, WhatThePolicyKeepsApartStays) {
  g_.output("y", sum(rows_));
  PassContext context{operators_, {}, {}, {}};
  std::vector<std::string> asked;
  context.may_merge = [&](const std::vector<std::string>& paths) {
    asked = paths;
    return false;
  };
  EXPECT_EQ(count(run_passes(g_.finish(), context), "EmbeddingBag"), 0);
  EXPECT_EQ(asked, (std::vector<std::string>{"ReduceSum", "bag.Gather"}));
}

TEST_F(RecogniseEmbeddingBagTest, CanBeSwitchedOff) {
  g_.output("y", sum(rows_));
  PassContext context{operators_, {}, {}, {}};
  const Graph after = run_passes(g_.finish(), context, {"recognise_embedding_bag"});
  EXPECT_EQ(count(after, "EmbeddingBag"), 0);
}

}  // namespace
}  // namespace tandem
