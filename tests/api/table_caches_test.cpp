// Which rows of a table a cache holds, and how many: counted in the data, for a requested size.
#include "placement/tables/table_caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "api/model/engine.h"
#include "engine/graph/builder.h"
#include "engine/train/tables/row_counts.h"
#include "tests/api/lookup_graph.h"

namespace tandem::api {
namespace {

using tandem::testing::lookup_graph;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<HotRows> hot_rows(const Graph& graph, const std::vector<std::int64_t>& values,
                                std::int64_t count) {
  const auto samples = static_cast<std::int64_t>(values.size()) / 2;
  return find_hot_rows(
      graph, *make_array_source({{"ids", HostTensor::from<std::int64_t>({samples, 2}, values)}}),
      reference_evaluator(), "table", count);
}

TEST(HotRowsTest, AreThoseThatAreNamedMostOften) {
  const std::vector<std::int64_t> values{9, 9, 9, 5, 5,  3, 7, 2,  // a micro-batch
                                         9, 5, 3, 3, -1, 8, 9, 6,  // -1 is row 19
                                         4, 4, 4, 4};              // no whole micro-batch
  const std::optional<HotRows> hot = hot_rows(lookup_graph(3), values, 3);
  ASSERT_TRUE(hot);
  EXPECT_THAT(*hot->rows, ElementsAre(3, 5, 9));
  EXPECT_DOUBLE_EQ(hot->hit_rate, 11.0 / 16);
  EXPECT_EQ(hot->cold_rows, 3) << "the mean of 2 and 3, rounded up";
}

TEST(HotRowsTest, OfEqualsTheLowerOnes) {
  const std::vector<std::int64_t> values{9, 8, 7, 6, 5, 4, 3, 2};
  EXPECT_THAT(*hot_rows(lookup_graph(3), values, 3)->rows, ElementsAre(2, 3, 4));
}

TEST(HotRowsTest, FillUpWithRowsThatAreNotNamed) {
  const std::vector<std::int64_t> values{1, 1, 1, 1, 4, 4, 4, 4};
  const std::optional<HotRows> hot = hot_rows(lookup_graph(3), values, 5);
  EXPECT_THAT(*hot->rows, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(hot->hit_rate, 1);
  EXPECT_EQ(hot->cold_rows, 0);
  EXPECT_EQ(hot_rows(lookup_graph(3), values, 500)->rows->size(), 20u) << "the table has no more";
}

TEST(HotRowsTest, CountAllLookups) {
  const std::vector<std::int64_t> values{1, 7, 2, 7, 3, 7, 4, 7};
  const std::optional<HotRows> hot = hot_rows(lookup_graph(3, true), values, 1);
  EXPECT_THAT(*hot->rows, ElementsAre(7));
  EXPECT_DOUBLE_EQ(hot->hit_rate, 0.5);
  EXPECT_EQ(hot->cold_rows, 4);
}

TEST(HotRowsTest, NeedIdsThatTheDataTells) {
  EXPECT_FALSE(hot_rows(lookup_graph(3), {1, 2}, 3)) << "less than one micro-batch";
  EXPECT_FALSE(hot_rows(lookup_graph(3, false, true), {1, 2, 3, 4, 5, 6, 7, 8}, 3));
}

TEST(HotRowsTest, OfTablesBeyondAnyCount) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  constexpr std::int64_t large = std::int64_t{1} << 27;
  State table;
  table.name = "table";
  table.start = HostTensor(TensorType{DType::float32, {large, 1}});
  const ValueId weights = b.state(std::move(table));
  b.output("rows", b.add_node("Gather", {weights, b.input("ids", {DType::int64, {4, 2}})}));
  const std::vector<std::int64_t> values{large - 1, 5, large - 1, 5, 5, 77, -1, 3};
  const std::optional<HotRows> hot = hot_rows(b.finish(), values, 3);
  EXPECT_THAT(*hot->rows, ElementsAre(3, 5, large - 1));
  EXPECT_DOUBLE_EQ(hot->hit_rate, 7.0 / 8);
}

// ---------------------------------------------------------------- number of rows

RunConfig with_optimizer(const std::string& keys) {
  return parse_run_config("model = \"model.onnx\"\nsteps = 1\nbatch_size = 4\n", "/tmp/train.toml",
                          {"optimizer=" + keys});
}

std::int64_t bytes_with(const std::string& keys) {
  const Graph graph = lookup_graph(3);
  return trained_row_bytes(graph, with_optimizer(keys), *graph.find_state("table"));
}

TEST(TableCachesTest, ARowTakesItsStates) {
  const std::map<std::string_view, std::int64_t> bytes{
      {"sgd", 12},       {"adam", 36},       {"adamw", 36},
      {"lazy_adam", 36}, {"adagrad", 24},    {"rowwise_adagrad", 16},  // one number a row
      {"ftrl", 36},      {"group_ftrl", 36}, {"lamb", 36},
      {"adafactor", 28}};  // statistics of the row, and of columns
  for (const auto& [kind, wanted] : bytes)
    EXPECT_EQ(bytes_with("{kind=\"" + std::string(kind) + "\"}"), wanted) << kind;
  EXPECT_EQ(bytes_with("{kind=\"sgd\", momentum=0.9}"), 24);
  EXPECT_EQ(bytes_with("{kind=\"sgd\", groups=[{at=\"table\", kind=\"adagrad\"}]}"), 24);
  RunConfig frozen = with_optimizer("{kind=\"adam\"}");
  frozen.parameters.freeze.push_back({.at = "table"});
  const Graph graph = lookup_graph(3);
  EXPECT_EQ(trained_row_bytes(graph, frozen, *graph.find_state("table")), 12);
}

// Two tables with the same ids cache the same rows, as many as fit the smaller cache.
TEST(TableCachesTest, TablesOfTheSameIdsShareTheirRows) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  const ValueId indices = b.input("ids", {DType::int64, {4, 2}}),
                others = b.input("others", {DType::int64, {4, 2}});
  const auto add = [&](const std::string& name, std::int64_t width, ValueId by) {
    State state;
    state.name = state.path = name;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {20, width}});
    b.output(name + "_rows", b.add_node("Gather", {b.state(std::move(state)), by}));
  };
  add("wide", 1, indices);
  add("deep", 4, indices);
  add("other", 4, others);
  const Graph graph = b.finish();
  const HostTensor values = HostTensor::from<std::int64_t>({4, 2}, {9, 9, 9, 5, 5, 3, 7, 2});
  const auto source = make_array_source({{"ids", values}, {"others", values}});
  TableCaches caches;
  const auto choose = [&](const std::vector<CacheRequest>& constraints) {
    return caches.choose(
        graph, with_optimizer("{kind=\"sgd\"}"), reference_evaluator(), [&] { return source; },
        constraints);
  };
  const CacheSize size{.bytes = 33};  // two rows of four numbers, eight of one
  const std::vector<TableCache> chosen =
      choose({{"wide", size, 1}, {"deep", size, 1}, {"other", size, 1}});
  EXPECT_THAT(*chosen[0].rows, ElementsAre(5, 9));
  EXPECT_EQ(chosen[1].rows, chosen[0].rows);
  EXPECT_EQ(chosen[0].bytes, 8);
  EXPECT_EQ(chosen[1].bytes, 32);
  EXPECT_NE(chosen[2].rows, chosen[0].rows) << "by other ids";
  EXPECT_EQ(choose({{"wide", size, 1}})[0].rows->size(), 8u) << "alone";
  EXPECT_NE(choose({{"wide", size, 1}, {"deep", size, 2}})[0].rows->size(), 2u) << "elsewhere";
}

// A lookup by constant ids makes the gradient of the whole table dense; that of a cached part would
// not be.
TEST(TableCachesTest, ConstantIdsBesideOthersLeaveALazyTableWithout) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  State state;
  state.name = state.path = "table";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {20, 3}});
  const ValueId table = b.state(std::move(state));
  b.output("rows", b.add_node("Gather", {table, b.input("ids", {DType::int64, {4, 2}})}));
  const ValueId always = b.constant(HostTensor::from<std::int64_t>({2}, {0, 1}));
  b.output("first", b.add_node("Gather", {table, b.reshape(always, {1, 2})}));
  const Graph graph = b.finish();
  const auto source = make_array_source(
      {{"ids", HostTensor::from<std::int64_t>({4, 2}, {9, 9, 9, 5, 5, 3, 7, 2})}});
  TableCaches caches;
  const auto choose = [&](const RunConfig& config) {
    return caches.choose(graph, config, reference_evaluator(), [&] { return source; },
                         {{"table", {.bytes = 200}, 1}})[0];
  };
  for (const std::string kind : {"lazy_adam", "ftrl"}) {
    const TableCache lazy = choose(with_optimizer("{kind=\"" + kind + "\"}"));
    EXPECT_EQ(lazy.rows, nullptr) << kind;
    EXPECT_THAT(lazy.off, HasSubstr("constant ids")) << kind;
  }
  EXPECT_NE(choose(with_optimizer("{kind=\"adam\"}")).rows, nullptr);
  const TableCache lamb = choose(with_optimizer("{kind=\"lamb\"}"));
  EXPECT_EQ(lamb.rows, nullptr);
  EXPECT_THAT(lamb.off, HasSubstr("step is of the whole table"));
  const TableCache adafactor = choose(with_optimizer("{kind=\"adafactor\"}"));
  EXPECT_EQ(adafactor.rows, nullptr);
  EXPECT_THAT(adafactor.off, HasSubstr("rowwise_adagrad without"));
  EXPECT_NE(choose(with_optimizer("{kind=\"lamb\", always_adapt=false}")).rows, nullptr)
      << "that is adam";
  RunConfig frozen = with_optimizer("{kind=\"lazy_adam\"}");
  frozen.parameters.freeze.push_back({.at = "table"});
  EXPECT_NE(choose(frozen).rows, nullptr);
}

TEST(TableCachesTest, SaysWhatTheDataLacks) {
  const Graph graph = lookup_graph(3);
  TableCaches caches;
  const auto off = [&](const TableCaches::Source& source, const CacheSize& size) {
    const std::vector<TableCache> chosen =
        caches.choose(graph, with_optimizer("{kind=\"sgd\"}"), reference_evaluator(), source,
                      {{"table", size, 1}});
    EXPECT_EQ(chosen[0].rows, nullptr);
    return chosen[0].off;
  };
  EXPECT_THAT(off([] { return nullptr; }, {.bytes = 100}), HasSubstr("no data shows"));
  EXPECT_THAT(
      off([]() -> std::shared_ptr<const tandem::DataSource> { throw std::runtime_error("?"); },
          {.bytes = 100}),
      HasSubstr("cannot be read"));
  EXPECT_THAT(off([] { return nullptr; }, {.part = 0.01}), HasSubstr("1% holds no row"));
  const auto other = make_array_source(
      {{"words", HostTensor::from<std::int64_t>({4, 2}, std::vector<std::int64_t>(8))}});
  EXPECT_THAT(off([&] { return other; }, {.bytes = 100}), HasSubstr("more than the data's fields"));
}

}  // namespace
}  // namespace tandem::api
