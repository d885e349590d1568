// Which gradients stay sparse in their rows.
#include "engine/gradient/row_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/gradient/gradient.h"

namespace tandem {
namespace {

class RowGradientTest : public ::testing::Test {
 protected:
  ValueId table() {
    State state;
    state.name = "table";
    state.kind = StateKind::parameter;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {10, 4}});
    return g.state(std::move(state));
  }
  ValueId lookup(ValueId table, const std::string& ids, std::int64_t count,
                 DType dtype = DType::int64) {
    return g.add_node("Gather", {table, g.input(ids, {dtype, {count}})});
  }
  ValueId sum(ValueId x) { return g.reduce_sum(x, {0, 1}, false); }
  std::optional<RowGradient> gradient(ValueId loss, ValueId of) {
    g.set_scope({"gradient", Phase::backward, {}});
    const GradientSeed seed{loss, g.scalar(1, DType::float32)};
    return row_gradient(g.graph(), add_gradients(g, std::span(&seed, 1), std::span(&of, 1))[0]);
  }

  OperatorSet operators = all_operators();
  GraphBuilder g{operators};
};

TEST_F(RowGradientTest, OneLookup) {
  const ValueId t = table();
  const auto rows = gradient(sum(lookup(t, "ids", 5)), t);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->ids.size(), 1u);
  EXPECT_EQ(id_count(g.graph(), *rows), 5);
  EXPECT_EQ(g.shape(rows->dy[0]), (Shape{5, 4}));
}

TEST_F(RowGradientTest, SeveralLookupsOfOneTable) {
  const ValueId t = table();
  const ValueId a = sum(lookup(t, "a", 5)), b = sum(lookup(t, "b", 3)), c = sum(lookup(t, "c", 2));
  const auto rows = gradient(g.add(g.add(a, b), c), t);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->ids.size(), 3u);
  EXPECT_EQ(id_count(g.graph(), *rows), 10);
}

TEST_F(RowGradientTest, ASumOfRowsHandsItsGradientToEach) {
  const ValueId t = table();
  const ValueId ids = g.input("ids", {DType::int64, {5, 3}});
  const ValueId weights = g.input("weights", {DType::float32, {5, 3}});
  const ValueId plain = sum(g.add_node("EmbeddingBag", {t, ids}));
  const ValueId weighted = sum(g.add_node("EmbeddingBag", {t, ids, weights}));
  const auto rows = gradient(g.add(g.add(plain, weighted), sum(lookup(t, "one", 2))), t);
  ASSERT_TRUE(rows);
  EXPECT_EQ(id_count(g.graph(), *rows), 32);
  ASSERT_EQ(rows->bags.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) {
    const bool one = rows->ids[k] != ids;
    EXPECT_EQ(rows->bags[k], one ? 1 : 3);
    EXPECT_EQ(g.shape(rows->dy[k]), (one ? Shape{2, 4} : Shape{5, 4}));
  }
  EXPECT_EQ(std::count(rows->weights.begin(), rows->weights.end(), weights), 1);
}

TEST_F(RowGradientTest, ATableThatAProductReadsTooIsDense) {
  const ValueId t = table();
  const ValueId x = lookup(t, "ids", 5);
  const ValueId logits = g.matmul(x, g.transpose_last_two(t));
  EXPECT_FALSE(gradient(sum(logits), t));
}

TEST_F(RowGradientTest, ConstantIdsAreDense) {
  const ValueId t = table();
  const ValueId ids = g.constant(HostTensor::from<std::int64_t>({2}, {1, 3}));
  EXPECT_FALSE(gradient(sum(g.add_node("Gather", {t, ids})), t));
}

TEST_F(RowGradientTest, IdsOfTwoTypesStayRows) {
  const ValueId t = table();
  const ValueId a = sum(lookup(t, "a", 5)), b = sum(lookup(t, "b", 3, DType::int32));
  const auto rows = gradient(g.add(a, b), t);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->ids.size(), 2u);
  EXPECT_NE(g.graph().type(rows->ids[0]).dtype, g.graph().type(rows->ids[1]).dtype);
  EXPECT_EQ(id_count(g.graph(), *rows), 8);
  const std::vector<ValueId> groups =
      g.node("UniqueIndices", rows->ids, {{"rows", std::int64_t{10}}});
  EXPECT_EQ(g.shape(groups[1]), (Shape{8}));
}

}  // namespace
}  // namespace tandem
