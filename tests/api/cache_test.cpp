// Runs whose device caches rows of a host's table: which rows, what crosses, checkpoints that know
// nothing of it, evaluations in between, what is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/engine.h"
#include "api/hot_rows.h"
#include "api/table_caches.h"
#include "engine/formats/files.h"
#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/builder.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::int64_t batch = 8, fields = 4, ids = batch * fields, rows = 100, columns = 16;
constexpr std::int64_t passes = 5, row_bytes = 4 * columns;

// ids [8, 4] -> embedding (table.weight [100, 16]) -> flatten -> classes: three.
std::string model() {
  return tandem::testing::SmallModel()
      .input("ids", {batch, fields}, 7)
      .weight("table.weight", {rows, columns}, 0.5f)
      .weight("classes.weight", {fields * columns, 3}, 0.5f)
      .node("Gather", "embedding", {"table.weight", "ids"}, "rows")
      .node("Flatten", "flatten", {"rows"}, "flat")
      .node("MatMul", "classes", {"flat", "classes.weight"}, "logits")
      .output("logits", {batch, 3})
      .bytes();
}

// Rows 40 and 41 in every pass, eight times each; 16 others, all different, in each pass.
std::int64_t id_at(std::int64_t pass, std::int64_t i) {
  if (i % 4 == 0) return 40;
  if (i % 4 == 2) return 41;
  return (i / 2 + 7 * pass) % 30;
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() {
    write("model.onnx", model());
    write("train.toml", R"(model = "model.onnx"
policy = "policy.toml"
batch_size = 8
steps = 5
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "lazy_adam"
lr = 0.05
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
shuffle = "none"
[data.eval]
files = [ "eval.npz" ]
[log]
every = "1 steps"
[parameters]
init = [ { at = "table:weight", kind = "normal", std = 0.5 } ]
)");
    write("policy.toml", R"(policy = 1
rules = [
  { at = "**", on = "gpu" },
  { at = "embedding", on = "cpu", ship = "rows" },
]
)");
    write_data("train.npz", passes);
    write_data("eval.npz", 2);
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void write_data(const std::string& name, std::int64_t count) const {
    HostTensor indices(TensorType{DType::int64, {count * batch, fields}});
    HostTensor labels(TensorType{DType::int32, {count * batch}});
    for (std::int64_t i = 0; i < count * ids; ++i)
      indices.as<std::int64_t>()[static_cast<std::size_t>(i)] = id_at(i / ids, i % ids);
    int label = 0;
    for (std::int32_t& each : labels.as<std::int32_t>()) each = label++ % 3;
    write_npz(folder_ / name, {{"ids", indices}, {"labels", labels}});
  }

  /// `cache`: of the table's rows, "" for none.
  static std::vector<std::string> rule(const std::string& cache) {
    if (cache.empty()) return {};
    return {"{ at = \"embedding\", cache = \"" + cache + "\" }"};
  }
  TrainOptions options(const std::string& run, const std::string& cache,
                       const std::vector<std::string>& overrides = {}) const {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.devices = {"gpu=emulated:0,memory=64MiB"};
    options.place = rule(cache);
    options.overrides = overrides;
    return options;
  }
  TrainResult train(const std::string& run, const std::string& cache,
                    const std::vector<std::string>& overrides = {}) const {
    return Trainer(folder_ / "train.toml", options(run, cache, overrides)).run();
  }
  TrainResult resume(const std::string& run, const std::string& cache, int steps) const {
    TrainOptions again = options(run, cache, {"steps=" + std::to_string(steps)});
    again.resume = true;
    return Trainer(folder_ / "train.toml", again).run();
  }
  PolicyOptions policy(const std::string& cache) const {
    PolicyOptions options;
    options.config = folder_ / "train.toml";
    options.devices = {"gpu=emulated:0,memory=64MiB"};
    options.place = rule(cache);
    return options;
  }
  Json read(const std::string& name) const { return Json::parse(read_file(folder_ / name)); }
  double copied(const std::string& run) const {
    return read(run + "/summary.json")["copied_bytes_per_step"];
  }

  /// All that the runs' checkpoints hold is equal.
  void expect_equal(const std::string& a, const std::string& b, int step) const {
    char name[32];
    std::snprintf(name, sizeof name, "/step-%08d/", step);
    for (const std::string part : {"model", "optimizer"}) {
      const std::string file = std::string(name) + part + ".safetensors";
      const SafetensorsFile one(folder_ / a + "/checkpoints" + file),
          other(folder_ / b + "/checkpoints" + file);
      ASSERT_EQ(one.tensors().size(), other.tensors().size());
      for (const NamedTensor& tensor : one.tensors()) {
        const HostTensor* same = other.find(tensor.name);
        ASSERT_NE(same, nullptr) << tensor.name;
        EXPECT_THAT(tensor.name, Not(HasSubstr("cached")));
        double worst = 0;
        for (std::int64_t i = 0; i < same->type().elements(); ++i)
          worst = std::max(worst, std::abs(same->number(i) - tensor.tensor.number(i)));
        EXPECT_LE(worst, 1e-6) << tensor.name << " at step " << step;
      }
    }
  }

  tandem::testing::TemporaryFolder folder_;
};

// A row takes 64 bytes and as much for each of two moments.
const std::string two_rows = "400B", all_rows = "1MiB";

TEST_F(CacheTest, TheRunRecordsTheCache) {
  Trainer trainer(folder_ / "train.toml", options("run", two_rows));
  EXPECT_THAT(
      trainer.summary(),
      AllOf(HasSubstr("\ntable      table:weight: rows cross (rule); about 16 different rows "
                      "outside the cache for 32 ids a pass"),
            HasSubstr("without the cache: 2 rows on gpu, 384 B with their state, 50.0% of the "
                      "ids")));
  trainer.run();
  const Json table = read("run/placement.json")["tables"][0];
  EXPECT_EQ(table["cached_rows"], 2);
  EXPECT_EQ(table["cache_device"], "gpu");
  EXPECT_EQ(table["cache_bytes"], 2 * 3 * row_bytes);
  EXPECT_EQ(table["hit_rate"], 0.5);
  EXPECT_EQ(table["unique_rows"], 16);
  EXPECT_EQ(table["bytes_rows"], 2 * 16 * row_bytes + 8 * ids);
  EXPECT_EQ(table["bytes_uncached"], 2 * 18 * row_bytes + 4 * ids);
  train("none", "");
  EXPECT_FALSE(read("none/placement.json")["tables"][0].contains("cached_rows"));
}

// Both rows stay away, there and back; an int32 for each id comes.
TEST_F(CacheTest, FewerBytesCross) {
  train("none", "");
  train("two", two_rows);
  EXPECT_EQ(copied("none") - copied("two"), 2 * 2 * row_bytes - 4 * ids);
  train("all", all_rows);
  EXPECT_EQ(copied("none") - copied("all"), 2 * 18 * row_bytes - 4 * ids);
}

TEST_F(CacheTest, TrainsTheSameTable) {
  const TrainResult none = train("none", "");
  for (const auto& [run, cache] :
       {std::pair<std::string, std::string>{"two", two_rows}, {"part", "13%"}, {"all", all_rows}}) {
    SCOPED_TRACE(run);
    const TrainResult result = train(run, cache);
    EXPECT_NEAR(result.loss, none.loss, 1e-6);
    EXPECT_NEAR(result.evaluation.at("loss"), none.evaluation.at("loss"), 1e-6);
    expect_equal("none", run, 5);
  }
}

TEST_F(CacheTest, EvaluationsSeeTheCachedRows) {
  const auto evaluations = [&](const std::string& run, const std::string& cache) {
    TrainOptions often =
        options(run, cache, {"eval.every=\"1 steps\"", "checkpoint.every=\"2 steps\""});
    std::vector<double> losses;
    often.on_progress = [&](const Progress& progress) {
      for (const auto& [name, value] : progress.values) {
        if (progress.evaluation && name == "loss") losses.push_back(value);
      }
    };
    Trainer(folder_ / "train.toml", often).run();
    return losses;
  };
  const std::vector<double> none = evaluations("none", ""), two = evaluations("two", two_rows);
  ASSERT_EQ(none.size(), 5u);
  ASSERT_EQ(two.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(two[i], none[i], 1e-6) << i;
  EXPECT_GT(std::abs(none[4] - none[0]), 1e-3);
  expect_equal("none", "two", 4);
}

TEST_F(CacheTest, CheckpointsDoNotDependOnIt) {
  train("none", "", {"steps=9"});
  for (const auto& [run, first, second] :
       {std::tuple<std::string, std::string, std::string>{"taken_away", two_rows, ""},
        {"added", "", two_rows},
        {"other", two_rows, "30%"}}) {
    SCOPED_TRACE(run);
    train(run, first, {"steps=4"});
    EXPECT_EQ(resume(run, second, 9).steps, 9u);
    expect_equal("none", run, 9);
  }
}

TEST_F(CacheTest, SplitTablesHaveSplitCaches) {
  const std::vector<std::string> split{
      "parameters.storage=[{at=\"table:weight\", kind=\"split_bfloat16\"}]"};
  train("none", "", split);
  train("two", two_rows, split);
  expect_equal("none", "two", 5);
}

TEST_F(CacheTest, OperatorsAreLoggedWithTheHitRate) {
  TrainOptions logged = options("run", two_rows);
  logged.log_operators = true;
  std::string messages;
  logged.on_message = [&](const std::string& text) { messages += text + "\n"; };
  Trainer(folder_ / "train.toml", logged).run();
  EXPECT_THAT(messages, ::testing::ContainsRegex("SplitIds +cpu +embedding, 50.0% cached"));
  EXPECT_THAT(messages, ::testing::ContainsRegex("16 +2 +8.00 +GatherAdd +gpu +embedding/cached"))
      << "of 32 ids 16 name 2 rows";
  EXPECT_THAT(messages, ::testing::ContainsRegex("16 +16 +1.00 +GatherRows +cpu +embedding"));
}

TEST_F(CacheTest, PlansCountIt) {
  const Json none = Json::parse(policy_plan(policy("")).report.json);
  const Json two = Json::parse(policy_plan(policy(two_rows)).report.json);
  const auto gpu = [](const Json& plan, const char* part) {
    return plan["devices"]["gpu"][part].get<std::int64_t>();
  };
  EXPECT_EQ(gpu(two, "parameters") - gpu(none, "parameters"), 2 * row_bytes);
  EXPECT_EQ(gpu(two, "state") - gpu(none, "state"), 2 * 2 * row_bytes);
  EXPECT_EQ(two["traffic"]["expected_bytes"].get<std::int64_t>() -
                none["traffic"]["expected_bytes"].get<std::int64_t>(),
            4 * ids - 2 * 2 * row_bytes);
}

TEST_F(CacheTest, ExplainSaysWhere) {
  const Report report = policy_explain(policy(two_rows), "table:weight");
  const Json cache = Json::parse(report.json)["attributes"]["cache"];
  EXPECT_EQ(cache["value"], "400 B");
  EXPECT_THAT(cache["reason"].get<std::string>(),
              HasSubstr(": 2 rows on gpu for 50.0% of the ids"));
  EXPECT_THAT(
      report.text,
      AllOf(HasSubstr("update     gpu        RowsUpdate optimizer.table.weight/cached"),
            HasSubstr("update     cpu        RowsUpdate optimizer.table.weight = "),
            HasSubstr(
                "[cpu.gather_add]: cache --place:1: 2 rows on gpu for 50.0% of the ids\n  update")))
      << "nothing else was requested";
  const Report embedding = policy_explain(policy(two_rows), "embedding");
  EXPECT_THAT(embedding.text, HasSubstr("forward    gpu        GatherAdd embedding/cached"));
}

TEST_F(CacheTest, NotesSayWhyThereIsNone) {
  EXPECT_THAT(policy_plan(policy("100B")).report.text,
              HasSubstr("table:weight has no cache: 100 B holds no row: one takes 192 B with its "
                        "optimizer states"));
  PolicyOptions of_the_model = policy(two_rows);
  of_the_model.config.clear();
  of_the_model.model = folder_ / "model.onnx";
  of_the_model.policy = folder_ / "policy.toml";
  of_the_model.bind = {{"batch", batch}};
  EXPECT_THAT(policy_plan(of_the_model).report.text,
              HasSubstr("no data tells which of its rows are looked up"));
  EXPECT_THAT(policy_check(policy(two_rows)).text, Not(HasSubstr("has no cache")));
}

// ---------------------------------------------------------------- which rows

/// Look-ups of `ids` [4, 2] in `table` [20, 3], once or by each column.
Graph look_ups(bool by_column = false, bool of_floats = false) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  State table;
  table.name = "table";
  table.path = "table";
  table.trainable = true;
  table.start = HostTensor(TensorType{DType::float32, {20, 3}});
  const ValueId weights = b.state(std::move(table));
  ValueId indices = b.input("ids", {of_floats ? DType::float32 : DType::int64, {4, 2}});
  if (of_floats) {
    State scale;
    scale.name = "scale";
    scale.start = HostTensor(TensorType{DType::float32, {2}});
    indices = b.mul(indices, b.state(std::move(scale)));
    indices = b.add_node("Cast", {indices}, {{"to", std::string("int64")}});
  }
  for (std::int64_t column = 0; column < (by_column ? 2 : 1); ++column) {
    ValueId chosen = indices;
    if (by_column) {
      chosen =
          b.add_node("Gather", {indices, b.constant(HostTensor::from<std::int64_t>({}, {column}))},
                     {{"axis", std::int64_t{1}}});
    }
    b.output("rows" + std::to_string(column), b.add_node("Gather", {weights, chosen}));
  }
  return b.finish();
}

std::optional<HotRows> hot_rows(const Graph& graph, const std::vector<std::int64_t>& values,
                                std::int64_t count) {
  const auto samples = static_cast<std::int64_t>(values.size()) / 2;
  return find_hot_rows(
      graph, *make_array_source({{"ids", HostTensor::from<std::int64_t>({samples, 2}, values)}}),
      reference_evaluator(), "table", count);
}

TEST(HotRowsTest, AreThoseThatAreNamedMostOften) {
  const std::vector<std::int64_t> values{9, 9, 9, 5, 5,  3, 7, 2,  // a pass
                                         9, 5, 3, 3, -1, 8, 9, 6,  // -1 is row 19
                                         4, 4, 4, 4};              // no whole pass
  const std::optional<HotRows> hot = hot_rows(look_ups(), values, 3);
  ASSERT_TRUE(hot);
  EXPECT_THAT(*hot->rows, ElementsAre(3, 5, 9));
  EXPECT_DOUBLE_EQ(hot->hit_rate, 11.0 / 16);
  EXPECT_EQ(hot->cold_rows, 3) << "the mean of 2 and 3, rounded up";
}

TEST(HotRowsTest, OfEqualsTheLowerOnes) {
  const std::vector<std::int64_t> values{9, 8, 7, 6, 5, 4, 3, 2};
  EXPECT_THAT(*hot_rows(look_ups(), values, 3)->rows, ElementsAre(2, 3, 4));
}

TEST(HotRowsTest, FillUpWithRowsThatAreNotNamed) {
  const std::vector<std::int64_t> values{1, 1, 1, 1, 4, 4, 4, 4};
  const std::optional<HotRows> hot = hot_rows(look_ups(), values, 5);
  EXPECT_THAT(*hot->rows, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(hot->hit_rate, 1);
  EXPECT_EQ(hot->cold_rows, 0);
  EXPECT_EQ(hot_rows(look_ups(), values, 500)->rows->size(), 20u) << "the table has no more";
}

TEST(HotRowsTest, CountAllLookUps) {
  const std::vector<std::int64_t> values{1, 7, 2, 7, 3, 7, 4, 7};
  const std::optional<HotRows> hot = hot_rows(look_ups(true), values, 1);
  EXPECT_THAT(*hot->rows, ElementsAre(7));
  EXPECT_DOUBLE_EQ(hot->hit_rate, 0.5);
  EXPECT_EQ(hot->cold_rows, 4);
}

TEST(HotRowsTest, NeedIdsThatTheDataTells) {
  EXPECT_FALSE(hot_rows(look_ups(), {1, 2}, 3)) << "less than one pass";
  EXPECT_FALSE(hot_rows(look_ups(false, true), {1, 2, 3, 4, 5, 6, 7, 8}, 3));
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

// ---------------------------------------------------------------- how many

RunConfig with_optimizer(const std::string& keys) {
  return parse_run_config("model = \"model.onnx\"\nsteps = 1\nbatch_size = 4\n", "/tmp/train.toml",
                          {"optimizer=" + keys});
}

std::int64_t bytes_with(const std::string& keys) {
  return trained_row_bytes(with_optimizer(keys), *look_ups().find_state("table"));
}

TEST(TableCachesTest, ARowTakesItsStates) {
  EXPECT_EQ(bytes_with("{kind=\"sgd\"}"), 12);
  EXPECT_EQ(bytes_with("{kind=\"sgd\", momentum=0.9}"), 24);
  EXPECT_EQ(bytes_with("{kind=\"lazy_adam\"}"), 36);
  EXPECT_EQ(bytes_with("{kind=\"rowwise_adagrad\"}"), 16) << "one number a row";
  EXPECT_EQ(bytes_with("{kind=\"sgd\", groups=[{at=\"table\", kind=\"adagrad\"}]}"), 24);
  RunConfig frozen = with_optimizer("{kind=\"adam\"}");
  frozen.parameters.freeze.push_back({.at = "table"});
  EXPECT_EQ(trained_row_bytes(frozen, *look_ups().find_state("table")), 12);
}

// Two tables of the same ids share the rows of the smaller cache.
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
  const auto choose = [&](const std::vector<CacheWish>& wishes) {
    return caches.choose(
        graph, with_optimizer("{kind=\"sgd\"}"), reference_evaluator(), [&] { return source; },
        wishes);
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

TEST(TableCachesTest, SaysWhatTheDataLacks) {
  const Graph graph = look_ups();
  TableCaches caches;
  const auto off = [&](const TableCaches::Source& source, const CacheSize& size) {
    const std::vector<TableCache> chosen =
        caches.choose(graph, with_optimizer("{kind=\"sgd\"}"), reference_evaluator(), source,
                      {{"table", size, 1}});
    EXPECT_EQ(chosen[0].rows, nullptr);
    return chosen[0].off;
  };
  EXPECT_THAT(off([] { return nullptr; }, {.bytes = 100}), HasSubstr("no data tells"));
  EXPECT_THAT(off([]() -> std::shared_ptr<const DataSource> { throw std::runtime_error("?"); },
                  {.bytes = 100}),
              HasSubstr("cannot be read"));
  EXPECT_THAT(off([] { return nullptr; }, {.part = 0.01}), HasSubstr("1% holds no row"));
  const auto other = make_array_source(
      {{"words", HostTensor::from<std::int64_t>({4, 2}, std::vector<std::int64_t>(8))}});
  EXPECT_THAT(off([&] { return other; }, {.bytes = 100}), HasSubstr("from the data's fields"));
}

}  // namespace
}  // namespace tandem::api
