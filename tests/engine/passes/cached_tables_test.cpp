// Lookups in a table and its cache give the same values and gradients as lookups in the table only,
// and nothing else may read such a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "engine/gradient/gradient.h"
#include "engine/gradient/row_gradient.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/operators/tables/rows.h"
#include "engine/passes/tables/cached_tables.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t rows = 10, columns = 4;

HostTensor random(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  HostTensor tensor(TensorType{DType::float32, shape});
  for (float& x : tensor.as<float>()) x = uniform(engine);
  return tensor;
}

/// Those rows of a tensor.
HostTensor rows_of(const HostTensor& table, const std::vector<std::int64_t>& which) {
  Shape shape = table.shape();
  const std::size_t bytes = table.bytes() / static_cast<std::size_t>(shape[0]);
  shape[0] = static_cast<std::int64_t>(which.size());
  HostTensor part(TensorType{table.dtype(), shape});
  for (std::size_t k = 0; k < which.size(); ++k) {
    std::memcpy(static_cast<char*>(part.data()) + k * bytes,
                static_cast<const char*>(table.data()) + static_cast<std::size_t>(which[k]) * bytes,
                bytes);
  }
  return part;
}

class CachedTablesTest : public ::testing::Test {
 protected:
  CachedTablesTest() {
    State state;
    state.name = "deep.weight";
    state.path = "deep:weight";
    state.trainable = true;
    state.start = start_;
    table_ = g_.state(std::move(state));
    ids_ = g_.input("ids", {DType::int64, {3, 5}});
    weights_ = g_.input("weights", {DType::float32, {3, 5}});
    g_.set_scope({"deep.Gather", Phase::forward, {}});
  }

  static int count(const Graph& graph, std::string_view op) {
    return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                          [&](const Node& node) { return node.op->name == op; }));
  }
  Graph split(const Graph& graph) const {
    return split_cached_tables(graph, operators_, {{"deep.weight", cached_}});
  }
  // The table's own elements of cached rows are NaN: they must not be read.
  std::vector<std::pair<std::string, HostTensor>> feeds(bool is_split) const {
    std::vector<std::int64_t> ids(15);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int64_t>(i * 7 % 20) - 10;
    ids[4] = absent_id<std::int64_t>;
    HostTensor table = start_.clone();
    for (const std::int64_t row : *cached_) {
      for (std::int64_t c = 0; is_split && c < columns; ++c)
        table.as<float>()[static_cast<std::size_t>(row * columns + c)] = std::nanf("");
    }
    return {{"ids", HostTensor::from<std::int64_t>({3, 5}, ids)},
            {"weights", random({3, 5}, 3)},
            {"deep.weight", table},
            {"deep.weight/cached", rows_of(start_, *cached_)}};
  }
  void expect_same(const Graph& graph) const {
    const Graph after = split(graph);
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const auto want = testing::evaluate(graph, feeds(false), {graph.outputs[i].value});
      const auto got = testing::evaluate(after, feeds(true), {after.outputs[i].value});
      EXPECT_EQ(testing::compare(got[0], want[0], 1e-6), "") << graph.outputs[i].name;
    }
  }
  std::string refusal(const Graph& graph) const {
    try {
      split(graph);
      return "none";
    } catch (const Error& error) {
      return error.what();
    }
  }

  OperatorSet operators_ = all_operators();
  GraphBuilder g_{operators_};
  HostTensor start_ = random({rows, columns}, 7);
  std::shared_ptr<const std::vector<std::int64_t>> cached_ =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{1, 2, 8});
  ValueId table_, ids_, weights_;
};

TEST_F(CachedTablesTest, LookupsFindTheirRowsInOneOfTheTwo) {
  const ValueId y = g_.add_node("Gather", {table_, ids_});
  g_.rename(y, "deep_rows");
  g_.output("deep_rows", y);
  const Graph graph = g_.finish();
  expect_same(graph);
  const Graph after = split(graph);
  const State* cache = after.find_state("deep.weight/cached");
  ASSERT_NE(cache, nullptr);
  ASSERT_TRUE(cache->derived.is_of<CachedRows>("deep.weight"));
  EXPECT_EQ(cache->derived.as<CachedRows>()->rows, cached_);
  EXPECT_EQ(cache->path, "deep:weight");
  EXPECT_TRUE(cache->trainable);
  EXPECT_EQ(cache->start.shape(), (Shape{3, columns}));
  const ValueId sum = after.find_value("deep_rows");
  ASSERT_TRUE(sum) << "the sum has the lookup's name";
  const Node& add = after.node(after.value(sum).producer);
  EXPECT_EQ(add.op->name, "Add");
  EXPECT_EQ(add.path, "deep.Gather/cached");
  EXPECT_EQ(add.origins, (std::vector<std::string>{"deep.Gather"}));
  EXPECT_EQ(after.node(after.value(add.inputs[0]).producer).path, "deep.Gather");
  EXPECT_EQ(after.node(after.value(add.inputs[1]).producer).path, "deep.Gather/cached");
}

TEST_F(CachedTablesTest, SumsOfRowsAreSumsOfTwo) {
  g_.output("plain", g_.add_node("EmbeddingBag", {table_, ids_}));
  g_.output("weighted", g_.add_node("EmbeddingBag", {table_, ids_, weights_}));
  const Graph graph = g_.finish();
  expect_same(graph);
  EXPECT_EQ(count(split(graph), "EmbeddingBag"), 4);
  EXPECT_EQ(count(split(graph), "SplitIds"), 1) << "of the same ids";
}

TEST_F(CachedTablesTest, TablesOfTheSameIdsShareTheSplit) {
  State wide;
  wide.name = "wide.weight";
  wide.start = random({rows, 1}, 9);
  const ValueId other = g_.state(std::move(wide));
  g_.output("deep", g_.add_node("Gather", {table_, ids_}));
  g_.output("wide", g_.add_node("Gather", {other, ids_}));
  const Graph graph = g_.finish();
  const Graph after =
      split_cached_tables(graph, operators_, {{"deep.weight", cached_}, {"wide.weight", cached_}});
  EXPECT_EQ(count(after, "SplitIds"), 1);
  EXPECT_EQ(count(after, "Gather"), 4);
  EXPECT_EQ(count(split(graph), "Gather"), 3) << "the wide table has no cache here";
}

// Both parts of the gradient are rows, and add up to the table's.
TEST_F(CachedTablesTest, GradientsAreRowsOfTheTwo) {
  const ValueId y = g_.add_node("Gather", {table_, ids_});
  g_.output("loss", g_.reduce_sum(g_.mul(y, y), {0, 1, 2}, false));
  const Graph graph = g_.finish();
  const auto gradients = [&](const Graph& forward, bool is_split) {
    GraphBuilder g(operators_, forward);
    std::vector<ValueId> wanted;
    for (const State& state : forward.states) wanted.push_back(state.initial);
    const GradientSeed seed{forward.outputs[0].value, g.scalar(1, DType::float32)};
    const std::vector<ValueId> dx = add_gradients(g, std::span(&seed, 1), wanted);
    for (const ValueId gradient : dx) EXPECT_TRUE(row_gradient(g.graph(), gradient));
    return testing::evaluate(g.graph(), feeds(is_split), dx);
  };
  const auto whole = gradients(graph, false), parts = gradients(split(graph), true);
  HostTensor sum = parts[0].clone();
  for (std::size_t k = 0; k < cached_->size(); ++k) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const std::int64_t at = (*cached_)[k] * columns + c;
      EXPECT_EQ(parts[0].number(at), 0);
      sum.as<float>()[static_cast<std::size_t>(at)] =
          static_cast<float>(parts[1].number(static_cast<std::int64_t>(k) * columns + c));
    }
  }
  EXPECT_EQ(testing::compare(sum, whole[0], 1e-6), "");
}

TEST_F(CachedTablesTest, WhatReadsAWholeTableIsRefused) {
  const ValueId y = g_.add_node("Gather", {table_, ids_});
  g_.set_scope({"head.MatMul", Phase::forward, {}});
  g_.output("logits", g_.matmul(y, g_.transpose_last_two(table_)));
  EXPECT_THAT(refusal(g_.finish()), HasSubstr("deep.weight, which is read here as a whole"));
}

TEST_F(CachedTablesTest, AnOutputThatIsTheTableIsRefused) {
  g_.output("rows", g_.add_node("Gather", {table_, ids_}));
  g_.output("table", table_);
  EXPECT_THAT(refusal(g_.finish()), HasSubstr("an output of the model"));
}

TEST_F(CachedTablesTest, WithoutCachesNothingChanges) {
  g_.output("rows", g_.add_node("Gather", {table_, ids_}));
  const Graph graph = g_.finish();
  EXPECT_EQ(to_text(split_cached_tables(graph, operators_, {})), to_text(graph));
}

}  // namespace
}  // namespace tandem
