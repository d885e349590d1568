// Runs whose device caches rows of a table on the host: traffic, checkpoints that are independent
// of the cache, evaluations in between, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/program/machine.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::int64_t lookup_batch = 8, lookup_fields = 4,
                       lookup_ids = lookup_batch * lookup_fields, lookup_rows = 100,
                       lookup_columns = 16;
constexpr std::int64_t micro_batches = 5, lookup_row_bytes = 4 * lookup_columns;

// ids [8, 4] -> embedding (table.weight [100, 16]) -> flatten -> classes: three.
std::string lookup_model() {
  return tandem::testing::SmallModel()
      .input("ids", {lookup_batch, lookup_fields}, 7)
      .weight("table.weight", {lookup_rows, lookup_columns}, 0.5f)
      .weight("classes.weight", {lookup_fields * lookup_columns, 3}, 0.5f)
      .node("Gather", "embedding", {"table.weight", "ids"}, "rows")
      .node("Flatten", "flatten", {"rows"}, "flat")
      .node("MatMul", "classes", {"flat", "classes.weight"}, "logits")
      .output("logits", {lookup_batch, 3})
      .bytes();
}

// Rows 40 and 41 occur in every micro-batch, eight times each; the 16 other ids of a micro-batch
// are all different.
std::int64_t id_at(std::int64_t micro_batch, std::int64_t i) {
  if (i % 4 == 0) return 40;
  if (i % 4 == 2) return 41;
  return (i / 2 + 7 * micro_batch) % 30;
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() {
    write("model.onnx", lookup_model());
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
    write_data("train.npz", micro_batches);
    write_data("eval.npz", 2);
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void write_data(const std::string& name, std::int64_t count) const {
    HostTensor indices(TensorType{DType::int64, {count * lookup_batch, lookup_fields}});
    HostTensor labels(TensorType{DType::int32, {count * lookup_batch}});
    for (std::int64_t i = 0; i < count * lookup_ids; ++i)
      indices.as<std::int64_t>()[static_cast<std::size_t>(i)] =
          id_at(i / lookup_ids, i % lookup_ids);
    int label = 0;
    for (std::int32_t& each : labels.as<std::int32_t>()) each = label++ % 3;
    write_npz(folder_ / name, {{"ids", indices}, {"labels", labels}});
  }

  /// `cache`: size of the cache for the table's rows, "" for none.
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
    again.accept_changes = true;  // accepts the changed placement
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

  /// The checkpoints of both runs must hold equal values.
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

// A row takes 64 bytes, and as many for each of two moments.
const std::string two_rows = "400B", all_rows = "1MiB";

TEST_F(CacheTest, TheRunRecordsTheCache) {
  Trainer trainer(folder_ / "train.toml", options("run", two_rows));
  EXPECT_THAT(
      trainer.summary(),
      AllOf(HasSubstr("\ntable      table:weight: rows cross (rule); about 16 different rows "
                      "outside the cache for 32 ids a micro-batch"),
            HasSubstr("without the cache: 2 rows on gpu, 384 B with their state, 50.0% of the "
                      "ids")));
  trainer.run();
  const Json table = read("run/placement.json")["tables"][0];
  EXPECT_EQ(table["cached_rows"], 2);
  EXPECT_EQ(table["cache_device"], "gpu");
  EXPECT_EQ(table["cache_bytes"], 2 * 3 * lookup_row_bytes);
  EXPECT_EQ(table["hit_rate"], 0.5);
  EXPECT_EQ(table["unique_rows"], 16);
  EXPECT_EQ(table["bytes_rows"], 2 * 16 * lookup_row_bytes + 8 * lookup_ids);
  EXPECT_EQ(table["bytes_uncached"], 2 * 18 * lookup_row_bytes + 4 * lookup_ids);
  train("none", "");
  EXPECT_FALSE(read("none/placement.json")["tables"][0].contains("cached_rows"));
}

// The rows 40 and 41 are not copied, in either direction; an int32 for each id is.
TEST_F(CacheTest, FewerBytesCross) {
  train("none", "");
  train("two", two_rows);
  EXPECT_EQ(copied("none") - copied("two"), 2 * 2 * lookup_row_bytes - 4 * lookup_ids);
  train("all", all_rows);
  EXPECT_EQ(copied("none") - copied("all"), 2 * 18 * lookup_row_bytes - 4 * lookup_ids);
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

// Row 40 is in both caches, row 7 is not; both must keep their bits, and all other rows must be as
// without caches.
TEST_F(CacheTest, FixedRowsStayInTableAndCache) {
  const std::string fixed = R"(parameters.fixed_rows=[{at="table:weight", rows=[7, 40]}])";
  const auto row = [&](const std::string& run, int step, std::size_t which) {
    char name[64];
    std::snprintf(name, sizeof name, "/checkpoints/step-%08d/model.safetensors", step);
    const SafetensorsFile file(folder_ / run + name);
    const HostTensor* table = file.find("table.weight");
    const auto values = table->as<float>().subspan(which * lookup_columns, lookup_columns);
    return std::vector<float>(values.begin(), values.end());
  };
  const std::string adamw = "optimizer={ kind = \"adamw\", lr = 0.05, weight_decay = 0.1 }";
  train("start", "", {fixed, "steps=1"});
  train("free", "");
  EXPECT_NE(row("start", 1, 40), row("free", 5, 40));
  train("none", "", {fixed});
  for (const auto& [run, cache, kind] :
       {std::tuple<std::string, std::string, std::string>{"none", "", ""},
        {"two", two_rows, ""},
        {"all", all_rows, ""},
        {"dense", "", adamw}}) {
    SCOPED_TRACE(run);
    if (run != "none")
      train(run, cache, kind.empty() ? std::vector{fixed} : std::vector{fixed, kind});
    for (const std::size_t which : {7u, 40u}) EXPECT_EQ(row("start", 1, which), row(run, 5, which));
    EXPECT_NE(row("start", 1, 41), row(run, 5, 41));
    if (kind.empty()) expect_equal("none", run, 5);
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

// One table, looked up by int64 and by int32 ids: rows that no id refers to stay unchanged, with
// and without a cache.
TEST_F(CacheTest, IdsOfTwoTypesTrainTheSameTable) {
  constexpr std::int64_t few = 2;
  write("model.onnx",
        tandem::testing::SmallModel()
            .input("ids", {lookup_batch, lookup_fields}, 7)
            .input("few", {lookup_batch, few}, 6)
            .weight("table.weight", {lookup_rows, lookup_columns}, 0.5f)
            .weight("classes.weight", {(lookup_fields + few) * lookup_columns, 3}, 0.5f)
            .node("Gather", "embedding", {"table.weight", "ids"}, "rows")
            .node("Gather", "second", {"table.weight", "few"}, "few_rows")
            .node("Concat", "both", {"rows", "few_rows"}, "all_rows", {{"axis", 1}})
            .node("Flatten", "flatten", {"all_rows"}, "flat")
            .node("MatMul", "classes", {"flat", "classes.weight"}, "logits")
            .output("logits", {lookup_batch, 3})
            .bytes());
  write("policy.toml", R"(policy = 1
rules = [
  { at = "**", on = "gpu" },
  { at = "{embedding,second}", on = "cpu", ship = "rows" },
]
)");
  for (const std::string name : {"train.npz", "eval.npz"}) {
    HostTensor wide(TensorType{DType::int64, {micro_batches * lookup_batch, lookup_fields}});
    HostTensor narrow(TensorType{DType::int32, {micro_batches * lookup_batch, few}});
    HostTensor labels(TensorType{DType::int32, {micro_batches * lookup_batch}});
    for (std::int64_t i = 0; i < micro_batches * lookup_ids; ++i)
      wide.as<std::int64_t>()[static_cast<std::size_t>(i)] = id_at(i / lookup_ids, i % lookup_ids);
    int i = 0;
    for (std::int32_t& id : narrow.as<std::int32_t>()) {
      id = i % 2 == 0 ? 40 : 50 + i % 37;
      ++i;
    }
    int label = 0;
    for (std::int32_t& each : labels.as<std::int32_t>()) each = label++ % 3;
    write_npz(folder_ / name, {{"ids", wide}, {"few", narrow}, {"labels", labels}});
  }
  std::string messages;
  const auto train_with = [&](const std::string& run, const std::string& cache) {
    TrainOptions how = options(run, "");
    if (!cache.empty()) how.place = {"{ at = \"{embedding,second}\", cache = \"" + cache + "\" }"};
    how.on_message = [&](const std::string& text) { messages += text + "\n"; };
    Trainer(folder_ / "train.toml", how).run();
  };
  train_with("none", "");
  for (const auto& [run, cache] :
       {std::pair<std::string, std::string>{"two", two_rows}, {"part", "13%"}, {"all", all_rows}}) {
    SCOPED_TRACE(run);
    train_with(run, cache);
    EXPECT_GT(read(run + "/placement.json")["tables"][0].value("cached_rows", 0), 0);
    expect_equal("none", run, 5);
  }
  EXPECT_THAT(messages, Not(HasSubstr("table:weight gets a dense gradient")));
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

// Every id is cached, so no row crosses in any step.
TEST_F(CacheTest, BenchKeepsTimesWhereNoRowCrosses) {
  for (const std::string more : {"", ", lookahead = 1"}) {
    SCOPED_TRACE(more);
    BenchOptions bench_options;
    bench_options.seconds = 0.01;
    bench_options.devices = {"gpu=emulated:0,memory=64MiB"};
    bench_options.place = {"{ at = \"embedding\", cache = \"" + all_rows + "\"" + more + " }"};
    const Json json = Json::parse(bench(folder_ / "train.toml", bench_options).json);
    EXPECT_GT(json["host_updates"]["ms"], 0);
    EXPECT_FALSE(json["copies"].empty());
    ASSERT_FALSE(json["operators"].empty());
    for (const Json& row : json["operators"]) EXPECT_GT(row["ms"], 0) << row;
    for (const Json& queue : json["queues"]) EXPECT_GE(queue["waiting_ms"], 0) << queue;
  }
}

// A shorter last batch has other micro-batches, which the report says.
TEST_F(CacheTest, BenchSaysWhereItHasNoTimes) {
  BenchOptions bench_options;
  bench_options.seconds = 0.01;
  bench_options.devices = {"gpu=emulated:0,memory=64MiB"};
  bench_options.overrides = {"batch_size=24", "micro_batch=8"};
  const Report report = bench(folder_ / "train.toml", bench_options);
  EXPECT_THAT(report.text, HasSubstr("no times were kept: not all measured steps"));
  EXPECT_TRUE(Json::parse(report.json)["host_updates"]["ms"].is_null());
}

TEST_F(CacheTest, OperatorsAreLoggedWhereNoRowCrosses) {
  for (const std::string more : {"", ", lookahead = 1"}) {
    SCOPED_TRACE(more);
    TrainOptions logged = options(more.empty() ? "plain" : "ahead", "");
    logged.place = {"{ at = \"embedding\", cache = \"" + all_rows + "\"" + more + " }"};
    logged.log_operators = true;
    std::string messages;
    logged.on_message = [&](const std::string& text) { messages += text + "\n"; };
    Trainer(folder_ / "train.toml", logged).run();
    EXPECT_THAT(messages, Not(HasSubstr("no times were kept")));
    EXPECT_THAT(messages, HasSubstr("operators of step 1, by time"));
  }
}

// If the cache is what does not fit, the error names it, with a size that would fit.
TEST_F(CacheTest, ACacheThatDoesNotFitIsNamed) {
  PolicyOptions small = policy(all_rows);
  const Json whole = Json::parse(policy_plan(small).json);
  const auto peak = whole["devices"]["gpu"]["peak"].get<std::int64_t>();
  small.devices = {"gpu=emulated:0,memory=" + std::to_string(peak - 4096) + "B"};
  const Plan plan = policy_plan(small);
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.text, AllOf(HasSubstr("the cache of the table table:weight takes 18.8 KiB"),
                               HasSubstr("cache = \"1.0 MiB\""), Not(HasSubstr("add the rule"))));
  const std::string before = "): cache = \"";
  const std::size_t at = plan.text.find(before);
  ASSERT_NE(at, std::string::npos) << plan.text;
  const std::size_t begin = at + before.size();
  const std::string size = plan.text.substr(begin, plan.text.find('"', begin) - begin);
  small.place = rule(size);
  EXPECT_TRUE(policy_plan(small).fits) << size;
}

// With rows of 64 bytes, the cache saves little: splitting the ids and running more kernels takes
// longer, unless the link is very slow.
TEST_F(CacheTest, ACacheThatCostsMoreThanItSavesIsWarnedOf) {
  const auto cache_hints = [](const PolicyOptions& options) {
    std::vector<Json> hints;
    const Json plan = Json::parse(policy_plan(options).json);
    for (const Json& hint : plan["hints"]) {
      if (hint["kind"] == "cache") hints.push_back(hint);
    }
    return hints;
  };
  PolicyOptions with = policy(two_rows);
  const std::vector<Json> hints = cache_hints(with);
  ASSERT_EQ(hints.size(), 1u);
  EXPECT_EQ(hints[0]["rule"], "embedding");
  EXPECT_THAT(hints[0]["message"].get<std::string>(),
              ::testing::MatchesRegex("the cache of 1 table costs [0-9.]+ ms a step by the cost "
                                      "model and saves [0-9.]+ ms"));
  EXPECT_THAT(policy_plan(with).text, HasSubstr("remove `cache`\n"));
  EXPECT_THAT(Trainer(folder_ / "train.toml", options("run", two_rows)).summary(),
              HasSubstr(": embedding: the cache of 1 table costs "));
  EXPECT_TRUE(cache_hints(policy("")).empty());

  // Two cached rows save 4 x 64 bytes, and 4 x 32 bytes of places are added: 128 bytes less, or 128
  // ms.
  with.devices = {"gpu=emulated:0,memory=64MiB,bandwidth=1kB/s"};
  EXPECT_TRUE(cache_hints(with).empty());
  // One row per id still crosses, and the places in addition.
  with.place = {"{ at = \"embedding\", cache = \"400B\", ship = \"results\" }"};
  const std::vector<Json> results = cache_hints(with);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(results[0]["fix"].get<std::string>(), HasSubstr("ship = \"rows\""));
}

TEST_F(CacheTest, PlansCountIt) {
  const Json none = Json::parse(policy_plan(policy("")).json);
  const Json two = Json::parse(policy_plan(policy(two_rows)).json);
  const auto gpu = [](const Json& plan, const char* part) {
    return plan["devices"]["gpu"][part].get<std::int64_t>();
  };
  EXPECT_EQ(gpu(two, "parameters") - gpu(none, "parameters"), 2 * lookup_row_bytes);
  EXPECT_EQ(gpu(two, "state") - gpu(none, "state"), 2 * 2 * lookup_row_bytes);
  EXPECT_EQ(two["traffic"]["expected_bytes"].get<std::int64_t>() -
                none["traffic"]["expected_bytes"].get<std::int64_t>(),
            4 * lookup_ids - 2 * 2 * lookup_row_bytes);
}

// Rows that are copied a step ahead cross once in a step like the others.
TEST_F(CacheTest, ExplainCountsRowsAheadOnceAsThePlanDoes) {
  for (const std::string more : {"", ", lookahead = 1"}) {
    SCOPED_TRACE(more);
    PolicyOptions options = policy(two_rows);
    options.place = {"{ at = \"embedding\", cache = \"" + std::string(two_rows) + "\"" + more +
                     " }"};
    const Json cost = Json::parse(policy_explain(options, "**").json)["cost"];
    const Json traffic = Json::parse(policy_plan(options).json)["traffic"];
    EXPECT_GT(traffic["bytes"], 0);
    EXPECT_EQ(cost["copied_bytes"], traffic["bytes"]);
  }
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
  EXPECT_THAT(policy_plan(policy("100B")).text,
              HasSubstr("table:weight has no cache: 100 B holds no row: one takes 192 B with its "
                        "optimizer states"));
  PolicyOptions of_the_model = policy(two_rows);
  of_the_model.config.clear();
  of_the_model.model = folder_ / "model.onnx";
  of_the_model.policy = folder_ / "policy.toml";
  of_the_model.bind = {{"batch", lookup_batch}};
  EXPECT_THAT(policy_plan(of_the_model).text,
              HasSubstr("no data shows which of its rows are looked up"));
  EXPECT_THAT(policy_check(policy(two_rows)).text, Not(HasSubstr("has no cache")));
}

}  // namespace
}  // namespace tandem::api
