// How tables on the host are sent: decided by the rows that the data's first batches look up,
// recorded with the run, reported by plans; and tables of other sizes in `inspect`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/model/model.h"
#include "api/table_rows.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/train/tables/row_counts.h"
#include "tandem/tandem.h"
#include "tests/api/lookup_graph.h"
#include "tests/api/small_model.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::Ended;
using tandem::testing::lookup_graph;
using tandem::testing::run_program;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using Json = nlohmann::json;

constexpr std::int64_t batch = 8, fields = 4, ids = batch * fields, rows = 1000, columns = 16;
constexpr std::int64_t row_bytes = 4 * columns;

// ids [8, 4] -> embedding (table.weight [1000, 16]) -> flatten -> classes: three.
std::string shipped_model() {
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

class ShipTest : public ::testing::Test {
 protected:
  ShipTest() {
    write("model.onnx", shipped_model());
    write("train.toml", R"(model = "model.onnx"
policy = "policy.toml"
batch_size = 8
steps = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
)");
    write("policy.toml", R"(policy = 1
rules = [
  { at = "**", on = "gpu" },
  { at = "embedding", on = "cpu" },
]
)");
    write_data({4, 5, 5});
  }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  // Writes batches that look up this many different rows each.
  void write_data(const std::vector<std::int64_t>& different) const {
    const std::int64_t samples = batch * static_cast<std::int64_t>(different.size());
    HostTensor indices(TensorType{DType::int64, {samples, fields}});
    HostTensor labels(TensorType{DType::int32, {samples}});
    std::int64_t at = 0;
    for (std::int64_t& id : indices.as<std::int64_t>()) {
      const std::int64_t number = at++;
      id = 7 * (number % different[static_cast<std::size_t>(number / ids)]);
    }
    for (std::int32_t& label : labels.as<std::int32_t>()) label = static_cast<int>(at++ % 3);
    write_npz(folder_ / "train.npz", {{"ids", indices}, {"labels", labels}});
  }
  TrainOptions options(const std::string& run, const std::vector<std::string>& place = {}) const {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.devices = {"gpu=emulated:0,memory=64MiB"};
    options.place = place;
    return options;
  }
  Json read(const std::string& name) const { return Json::parse(read_file(folder_ / name)); }
  PolicyOptions policy(const std::vector<std::string>& place = {}) const {
    PolicyOptions options;
    options.config = folder_ / "train.toml";
    options.devices = {"gpu=emulated:0,memory=64MiB"};
    options.place = place;
    return options;
  }
  PolicyOptions policy_of_the_model(const std::vector<std::string>& place = {}) const {
    PolicyOptions options = policy(place);
    options.config.clear();
    options.model = folder_ / "model.onnx";
    options.policy = folder_ / "policy.toml";
    options.bind = {{"batch", batch}};
    return options;
  }

  tandem::testing::TemporaryFolder folder_;
};

const std::string by_rows = "{ at = \"embedding\", ship = \"rows\" }",
                  by_results = "{ at = \"embedding\", ship = \"results\" }";

std::vector<Json> transfers_of_rows(const Json& plan) {
  std::vector<Json> found;
  for (const Json& transfer : plan["transfers"]) {
    if (transfer.value("rows", false)) found.push_back(transfer);
  }
  return found;
}

// If a rule says so, the rows of the next step cross in this one; the plan counts each row once.
TEST_F(ShipTest, LooksAStepAhead) {
  const std::string by_one = "{ at = \"embedding\", lookahead = 1 }",
                    by_three = "{ at = \"embedding\", lookahead = 3 }";
  const Json plain = Json::parse(policy_plan(policy({by_rows})).json);
  const Json fetched = Json::parse(policy_plan(policy({by_rows, by_one})).json);
  const std::vector<Json> transfers = transfers_of_rows(fetched);
  EXPECT_EQ(std::count_if(transfers.begin(), transfers.end(),
                          [](const Json& each) { return each.value("ahead", false); }),
            1);
  // In addition, there is a place for each row that may occur.
  EXPECT_EQ(fetched["traffic"]["bytes"].get<int>(), plain["traffic"]["bytes"].get<int>() + 4 * ids);
  EXPECT_EQ(fetched["traffic"]["expected_bytes"].get<int>(),
            plain["traffic"]["expected_bytes"].get<int>() + 4 * 5);
  EXPECT_EQ(fetched["devices"]["gpu"]["state"].get<std::int64_t>(),
            plain["devices"]["gpu"]["state"].get<std::int64_t>() + ids * row_bytes);

  const auto ahead_of = [&](PolicyOptions options) {
    const Json told = Json::parse(policy_explain(options, "table:weight").json)["attributes"];
    if (!told.contains("ahead")) return std::string();
    return told["ahead"]["value"].get<std::string>() + ": " +
           told["ahead"]["reason"].get<std::string>();
  };
  EXPECT_EQ(ahead_of(policy({by_rows})), "") << "no rule asks for it";
  EXPECT_THAT(ahead_of(policy({by_rows, by_one})),
              AllOf(HasSubstr("1 step: --place"), Not(HasSubstr("act as"))));
  EXPECT_THAT(ahead_of(policy({by_rows, by_three})), HasSubstr("; 3 act as 1"));
  PolicyOptions adam = policy({by_rows, by_one});
  adam.overrides = {"optimizer.kind=adam"};
  EXPECT_THAT(ahead_of(adam),
              AllOf(HasSubstr("no: "), HasSubstr("every step changes all of them")));
  EXPECT_THAT(policy_plan(adam).text, HasSubstr("note        table:weight: rows of the next "
                                                "step are not fetched ahead: every step"));
  EXPECT_THAT(ahead_of(policy({by_rows, by_one, "{ at = \"embedding\", run = \"gpu\" }"})),
              AllOf(HasSubstr("no: "), HasSubstr("no lookup on the host is read")));

  const TrainResult one = Trainer(folder_ / "train.toml", options("one", {by_rows})).run();
  const TrainResult other =
      Trainer(folder_ / "train.toml", options("other", {by_rows, by_one})).run();
  EXPECT_EQ(other.loss, one.loss);
}

TEST_F(ShipTest, TheDataDecidesAndTheRunRecordsIt) {
  Trainer trainer(folder_ / "train.toml", options("run"));
  EXPECT_THAT(trainer.summary(),
              HasSubstr("\ntable      table:weight: rows cross (data); about 5 different rows for "
                        "32 ids a micro-batch; there and back 768 B as rows, 4.0 KiB as results"));
  const TrainResult result = trainer.run();
  const Json tables = read("run/placement.json")["tables"];
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0]["parameter"], "table:weight");
  EXPECT_EQ(tables[0]["ship"], "rows");
  EXPECT_EQ(tables[0]["source"], "data");
  EXPECT_EQ(tables[0]["ids"], ids);
  EXPECT_EQ(tables[0]["unique_rows"], 5) << "the mean of 4, 5 and 5, rounded up";
  EXPECT_EQ(tables[0]["bytes_rows"], 2 * 5 * row_bytes + 4 * ids);
  EXPECT_EQ(tables[0]["bytes_results"], 2 * ids * row_bytes);

  const TrainResult by_rule =
      Trainer(folder_ / "train.toml", options("results", {by_results})).run();
  EXPECT_NEAR(result.loss, by_rule.loss, 1e-5 * std::abs(by_rule.loss));
  const Json ruled = read("results/placement.json")["tables"];
  EXPECT_EQ(ruled[0]["ship"], "results");
  EXPECT_EQ(ruled[0]["source"], "rule");

  // Copied are the rows that occur, which is less than the results.
  const double copied = read("run/summary.json")["copied_bytes_per_step"];
  const double as_results = read("results/summary.json")["copied_bytes_per_step"];
  EXPECT_GT(copied, 0);
  EXPECT_LT(copied, as_results - (4096 - 768) / 2);
}

TEST_F(ShipTest, AResumedRunChoosesTheSame) {
  Trainer(folder_ / "train.toml", options("run")).run();
  const Json first = read("run/placement.json")["tables"];
  TrainOptions again = options("run");
  again.resume = true;
  again.overrides = {"steps=5"};
  EXPECT_EQ(Trainer(folder_ / "train.toml", again).run().steps, 5u);
  EXPECT_EQ(read("run/placement.json")["tables"], first);
}

TEST_F(ShipTest, ManyDifferentRowsAreSentAsResults) {
  write_data({32, 32});
  Trainer(folder_ / "train.toml", options("run")).run();
  const Json table = read("run/placement.json")["tables"][0];
  EXPECT_EQ(table["ship"], "results");
  EXPECT_EQ(table["source"], "data");
  EXPECT_EQ(table["unique_rows"], 32);
}

TEST_F(ShipTest, PassesAreCountedWhereAStepHasSeveral) {
  TrainOptions in_micro_batches = options("run");
  in_micro_batches.overrides = {"micro_batch=4"};
  Trainer(folder_ / "train.toml", in_micro_batches).run();
  const Json table = read("run/placement.json")["tables"][0];
  EXPECT_EQ(table["ids"], ids / 2);
  EXPECT_EQ(table["unique_rows"], 5);
}

TEST_F(ShipTest, TablesThatDoNotCrossAreNotCounted) {
  TrainOptions on_cpu = options("run", {"{ at = \"**\", on = \"cpu\" }"});
  Trainer trainer(folder_ / "train.toml", on_cpu);
  EXPECT_THAT(trainer.summary(), Not(HasSubstr("\ntable ")));
  trainer.run();
  EXPECT_EQ(read("run/placement.json")["tables"], Json::array());
  EXPECT_FALSE(read("run/summary.json").contains("copied_bytes_per_step"));
}

TEST_F(ShipTest, PlansSayWhatToExpectOfRows) {
  const Plan plan = policy_plan(policy());
  const Json json = Json::parse(plan.json);
  const std::vector<Json> of_rows = transfers_of_rows(json);
  ASSERT_EQ(of_rows.size(), 2u) << "there, and the gradient back: " << json["transfers"];
  std::vector<std::string> ends;
  for (const Json& transfer : of_rows) {
    EXPECT_EQ(transfer["bytes"], ids * row_bytes) << "as many rows as there are ids";
    EXPECT_EQ(transfer["expected_bytes"], 5 * row_bytes);
    ends.push_back(transfer["to"]);
  }
  EXPECT_THAT(ends, ElementsAre("gpu", "cpu"));
  const std::size_t most = json["traffic"]["bytes"];
  EXPECT_EQ(json["traffic"]["expected_bytes"], most - 2 * (ids - 5) * row_bytes);
  EXPECT_THAT(plan.text, HasSubstr("at most 2.0 KiB, about 320 B"));

  const Json as_results = Json::parse(policy_plan(policy({by_results})).json);
  EXPECT_THAT(transfers_of_rows(as_results), IsEmpty());
  EXPECT_FALSE(as_results["traffic"].contains("expected_bytes"));
}

TEST_F(ShipTest, WithoutDataPlansTakeTheBound) {
  const Json automatic = Json::parse(policy_plan(policy_of_the_model()).json);
  EXPECT_THAT(transfers_of_rows(automatic), IsEmpty());  // 32 rows and an index for 32 ids
  const Plan ruled = policy_plan(policy_of_the_model({by_rows}));
  const std::vector<Json> of_rows = transfers_of_rows(Json::parse(ruled.json));
  ASSERT_FALSE(of_rows.empty());
  for (const Json& transfer : of_rows) EXPECT_FALSE(transfer.contains("expected_bytes"));
  EXPECT_THAT(ruled.text, AllOf(HasSubstr("at most 2.0 KiB "), Not(HasSubstr(", about"))));
}

TEST_F(ShipTest, ExplainTellsTheNumbers) {
  EXPECT_THAT(policy_explain(policy(), "table:weight").text,
              HasSubstr("about 5 rows for 32 ids, counted in the data"));
  EXPECT_THAT(policy_explain(policy_of_the_model(), "table:weight").text,
              HasSubstr("at most 32 rows for 32 ids"));
}

// The error names a table that does not fit, with the rule that keeps it on the host.
TEST_F(ShipTest, ATableThatDoesNotFitIsNamed) {
  PolicyOptions small = policy({"{ at = \"**\", on = \"gpu\" }"});
  small.devices = {"gpu=emulated:0,memory=48KiB"};
  EXPECT_THAT(policy_plan(small).text,
              AllOf(HasSubstr("fits: no"), HasSubstr("the table table:weight"),
                    HasSubstr("62.5 KiB"), HasSubstr("{ at = \"embedding\", on = \"cpu\" }")));
}

TEST_F(ShipTest, CheckNeedsNoData) {
  remove_all(folder_ / "train.npz");
  EXPECT_THAT(policy_check(policy()).text, HasSubstr("ok: 2 rules"));
  EXPECT_THROW(policy_plan(policy()), Error);
}

// ---------------------------------------------------------------- counting

std::map<std::string, std::int64_t> counted(const Graph& graph,
                                            const std::vector<std::int64_t>& values) {
  const auto samples = static_cast<std::int64_t>(values.size()) / 2;
  return count_unique_rows(
      graph, *make_array_source({{"ids", HostTensor::from<std::int64_t>({samples, 2}, values)}}),
      reference_evaluator());
}

TEST(RowCountsTest, TakesTheMeanOfWholePasses) {
  const std::vector<std::int64_t> values{1, 1, 1, 1, 1, 1, 1,  1,  // 1
                                         1, 2, 1, 2, 1, 2, -1, 3,  // 4: -1 is the last row
                                         5, 6, 7, 8};              // no whole micro-batch
  EXPECT_THAT(counted(lookup_graph(1, false), values),
              ElementsAre(Pair("table", 3)));  // 2.5, rounded up
}

TEST(RowCountsTest, CountsEachLookupByItself) {
  const std::vector<std::int64_t> values{1, 1, 1, 2, 1, 3, 1, 4};
  EXPECT_THAT(counted(lookup_graph(1, true), values), ElementsAre(Pair("table", 1 + 4)));
}

TEST(RowCountsTest, ReadsTheFirst32PassesAlone) {
  std::vector<std::int64_t> values(32 * 8, 1);
  for (std::int64_t i = 0; i < 800; ++i) values.push_back(i % 20);
  EXPECT_THAT(counted(lookup_graph(1, false), values), ElementsAre(Pair("table", 1)));
}

TEST(RowCountsTest, LeavesOutWhatTheDataDoesNotTell) {
  EXPECT_THAT(counted(lookup_graph(1, false), {1, 2}), IsEmpty()) << "less than one micro-batch";
  const auto floats =
      make_array_source({{"ids", HostTensor::from<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})}});
  EXPECT_THAT(count_unique_rows(lookup_graph(1, false, true), *floats, reference_evaluator()),
              IsEmpty())
      << "a parameter decides";
  const auto other = make_array_source(
      {{"words", HostTensor::from<std::int64_t>({4, 2}, std::vector<std::int64_t>(8))}});
  EXPECT_THAT(count_unique_rows(lookup_graph(1, false), *other, reference_evaluator()), IsEmpty());
}

// ---------------------------------------------------------------- sizes of tables

class RowsTest : public ShipTest {
 protected:
  RunConfig config(const std::string& function) const {
    return parse_run_config(R"toml(model = "model.onnx"
batch_size = 8
steps = 1
[parameters]
shape = [ { at = "table:weight", rows = "vocabulary(ids)" } ]
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
[data]
kind = "tsv"
columns = [ "a", "b", "class" ]
[data.train]
files = [ "none.tsv" ]
[data.fields]
labels = { from = "class", as = [ "int64" ] }
ids = { from = [ "a", "b" ], as = [ )toml" +
                                function + " ] }\n",
                            folder_ / "train.toml", {});
  }
  std::optional<std::int64_t> saved(const std::string& function) const {
    const RunConfig run = config(function);
    return saved_vocabulary_rows(run, folder_ / "", run.parameters.shape[0]);
  }
};

TEST_F(RowsTest, ARunsVocabularyNeedsNoData) {
  EXPECT_EQ(saved("'vocabulary'"), std::nullopt);
  write("vocabulary.ids.tsv", "column\tvalue\tcount\na\tx\\ny\t3\nb\t\t1\n");
  EXPECT_EQ(saved("'vocabulary'"), 3);
  EXPECT_EQ(saved("'vocabulary(name=\"words\")'"), std::nullopt);
  write("vocabulary.words.tsv", "column\tvalue\tcount\n");
  EXPECT_EQ(saved("'vocabulary(name=\"words\")'"), 1);
  EXPECT_EQ(saved("'vocabulary(name=\"two words\")'"), std::nullopt);
  EXPECT_EQ(saved("'hash(9)'"), std::nullopt);
  const RunConfig run = config("'vocabulary'");
  EXPECT_EQ(saved_vocabulary_rows(run, "", run.parameters.shape[0]), std::nullopt);

  const Engine engine;
  ConfiguredModel open(engine, run, {.run_dir = folder_ / ""});  // there is no data to prepare
  EXPECT_EQ(open.imported(8, true).graph.find_state("table.weight")->start.shape(),
            (Shape{3, columns}));
}

TEST_F(RowsTest, ACutVocabularyIsRefused) {
  write("vocabulary.ids.tsv", "column\tvalue\tcount\na\tx\t");
  try {
    saved("'vocabulary'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_THAT(error.what(), HasSubstr("vocabulary.ids.tsv"));
  }
}

TEST_F(RowsTest, InspectShowsGrownTables) {
  InspectOptions options;
  options.rows = {{"table:weight", 5000}};
  options.parameters = true;
  const InspectReport report = inspect(folder_ / "model.onnx", options);
  EXPECT_FALSE(report.blocks_training);
  const Json table = Json::parse(report.json)["parameters"][0];
  EXPECT_EQ(table["path"], "table:weight");
  EXPECT_EQ(table["shape"], Json({5000, columns}));
  EXPECT_THAT(report.text, HasSubstr("float32[5000, 16]"));
  options.rows.push_back({"tabel:weight", 5});
  try {
    inspect(folder_ / "model.onnx", options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("--rows:2"), HasSubstr("matches no parameter"),
                                    HasSubstr("did you mean \"table:weight\"?")));
  }
}

TEST_F(RowsTest, TheToolTakesRowsOfTables) {
  const auto run = [&](const std::string& arguments) {
    return run_program("inspect " + (folder_ / "model.onnx") + arguments + " 2>&1");
  };
  const Ended shown = run(" --parameters --rows 'table:*=70' --rows table:weight=80");
  EXPECT_THAT(shown.text, HasSubstr("float32[80, 16]"));
  EXPECT_EQ(shown.code, 0);
  for (const std::string wrong : {"table:weight", "table:weight=0", "=5", "table:weight=5x"}) {
    const Ended refused = run(" --rows " + wrong);
    EXPECT_THAT(refused.text, HasSubstr("SELECTOR=N")) << wrong;
    EXPECT_EQ(refused.code, 2) << wrong;
  }
}

}  // namespace
}  // namespace tandem::api
