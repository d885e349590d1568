// What `bench` and `train --log-operators` report on lookups in tables and on their updates: ids
// and rows equal a plain count, bytes are those of the rows that occur.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "api/program/machine.h"
#include "engine/formats/arrays/npy.h"
#include "engine/train/tables/id_source.h"
#include "kernels/cpu/rows/rows.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/api/train_toml.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::int64_t logged_samples = 64, logged_fields = 39, table_rows = 5000;
constexpr std::int64_t all_ids = logged_samples * logged_fields;

// Every step uses all samples, so its set of ids is always the same, in some order.
class TableLogTest : public ::testing::Test {
 protected:
  TableLogTest() { write("policy.toml", "policy = 1\n"); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // Small ids occur many times, most rows never.
  std::vector<std::int64_t> zipf_ids(std::int64_t count, std::int64_t rows) {
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
    for (std::int64_t& id : ids) {
      id = static_cast<std::int64_t>(std::pow(static_cast<double>(rows), uniform(random_))) - 1;
    }
    return ids;
  }
  HostTensor clicks(std::int64_t count) {
    std::vector<float> labels;
    for (std::int64_t i = 0; i < count; ++i) labels.push_back(random_() % 3 == 0 ? 1.0f : 0.0f);
    return HostTensor::from<float>({count}, labels);
  }

  void write_wide_deep() {
    const std::vector<std::int64_t> ids = zipf_ids(all_ids, table_rows);
    unique_ = static_cast<std::int64_t>(std::set<std::int64_t>(ids.begin(), ids.end()).size());
    write_npz(folder_ / "train.npz",
              {{"ids", HostTensor::from<std::int64_t>({logged_samples, logged_fields}, ids)},
               {"label", clicks(logged_samples)}});
    write("train.toml", "model = \"" + source_folder() + R"(/models/wide_deep/model.onnx"
policy = "policy.toml"
batch_size = 64
steps = 4
loss.terms = [ { name = "loss", kind = "binary_cross_entropy", logits = "logits", labels = "label" } ]
[optimizer]
kind = "adam"
groups = [ { at = "wide:*", kind = "ftrl" }, { at = "deep:*", kind = "lazy_adam" } ]
[data]
kind = "npz"
train.files = [ "train.npz" ]
fields = { ids = { from = "ids", as = [ "int64" ] }, label = "label" }
[log]
every = "2 steps"
)");
  }

  Report run(const std::vector<std::string>& overrides = {}) {
    BenchOptions options;
    options.overrides = overrides;
    options.seconds = 0.01;
    return bench(folder_ / "train.toml", options);
  }

  /// The messages of a training.
  std::vector<std::string> train(bool log_operators) {
    std::vector<std::string> messages;
    TrainOptions options;
    options.run_dir = folder_ / (log_operators ? "logged" : "plain");
    options.log_operators = log_operators;
    options.on_message = [&](const std::string& text) { messages.push_back(text); };
    Trainer(folder_ / "train.toml", options).run();
    return messages;
  }

  testing::TemporaryFolder folder_;
  std::mt19937 random_{7};
  std::int64_t unique_ = 0;
};

std::vector<Json> rows_of(const Report& report, const std::string& op, const std::string& path) {
  std::vector<Json> found;
  const Json json = Json::parse(report.json);
  for (const Json& row : json["operators"]) {
    const bool matches =
        row["op"] == op && row["path"].get<std::string>().find(path) != std::string::npos;
    if (matches) found.push_back(row);
  }
  return found;
}

void expect_counts(const Json& row, std::int64_t ids, std::int64_t unique) {
  ASSERT_TRUE(row.contains("ids")) << row;
  EXPECT_EQ(row["ids"], ids) << row;
  EXPECT_EQ(row["unique"], unique) << row;
  EXPECT_NEAR(row["dedup"].get<double>(), static_cast<double>(ids) / static_cast<double>(unique),
              1e-9);
  EXPECT_NEAR(row["gbs"].get<double>(), row["bytes"].get<double>() / row["ms"].get<double>() / 1e6,
              1e-6 * row["gbs"].get<double>());
}

/// Bytes as the kernel counts them.
double update_bytes(unsigned states, std::int64_t columns, std::int64_t unique,
                    std::int64_t positions) {
  static const std::int32_t some = 0;
  RowGradients gradients;
  gradients.columns = columns;
  gradients.groups = unique;
  gradients.offsets = gradients.order = &some;
  return update_rows_bytes({.kept = states}, gradients, positions);
}

TEST_F(TableLogTest, CountsAreThoseOfASet) {
  write_wide_deep();
  const Report report = run();
  for (const auto& [table, columns, states] :
       {std::tuple("wide", 1, 3u), std::tuple("deep", 4, 3u)}) {
    SCOPED_TRACE(table);
    const bool bag = columns == 1;  // the wide rows are summed over the fields
    const std::vector<Json> lookups = rows_of(report, bag ? "EmbeddingBag" : "Gather", table);
    ASSERT_EQ(lookups.size(), 1u);
    expect_counts(lookups[0], all_ids, unique_);
    const std::int64_t row = 4 * columns, results = bag ? all_ids / 39 : all_ids;
    EXPECT_EQ(lookups[0]["bytes"], all_ids * 8 + results * row + unique_ * row);
    const std::vector<Json> updates = rows_of(report, "RowsUpdate", table);
    ASSERT_EQ(updates.size(), 1u);
    expect_counts(updates[0], all_ids, unique_);
    EXPECT_EQ(updates[0]["bytes"], update_bytes(states, columns, unique_, all_ids) -
                                       static_cast<double>((all_ids - results) * row));
    EXPECT_FALSE(updates[0].contains("of_bandwidth")) << "all of it stays in caches";
  }
  const std::vector<Json> groups = rows_of(report, "UniqueIndices", "");
  ASSERT_EQ(groups.size(), 1u);
  expect_counts(groups[0], all_ids, unique_);
  EXPECT_EQ(groups[0]["bytes"], all_ids * (8 + 4) + unique_ * (8 + 4));
  const Json json = Json::parse(report.json);
  for (const Json& row : json["operators"]) {
    EXPECT_EQ(row.contains("ids"), row["op"] == "Gather" || row["op"] == "EmbeddingBag" ||
                                       row["op"] == "UniqueIndices" || row["op"] == "RowsUpdate")
        << row;
  }
  EXPECT_THAT(report.text, HasSubstr("tables, by time"));
  EXPECT_THAT(report.text, HasSubstr(std::to_string(unique_)));
}

// Lookups read 2 bytes per value and write 4; updates read and write both halves.
TEST_F(TableLogTest, SplitTablesCostLookupsHalf) {
  write_wide_deep();
  const Report report =
      run({R"(parameters.storage=[{at="{wide,deep}:weight", kind="split_bfloat16"}])"});
  for (const auto& [table, columns, states] :
       {std::tuple("wide", 1, 3u), std::tuple("deep", 4, 3u)}) {
    SCOPED_TRACE(table);
    const bool bag = columns == 1;
    const std::vector<Json> lookups = rows_of(report, bag ? "EmbeddingBag" : "Gather", table);
    ASSERT_EQ(lookups.size(), 1u);
    const std::int64_t results = bag ? all_ids / 39 : all_ids;
    EXPECT_EQ(lookups[0]["bytes"], all_ids * 8 + results * 4 * columns + unique_ * 2 * columns);
    const std::vector<Json> updates = rows_of(report, "RowsUpdate", table);
    ASSERT_EQ(updates.size(), 1u);
    EXPECT_EQ(updates[0]["bytes"], update_bytes(states, columns, unique_, all_ids) -
                                       static_cast<double>((all_ids - results) * 4 * columns));
  }
}

// Lookups count one micro-batch; the update counts what all micro-batches of the step looked up.
TEST_F(TableLogTest, UpdatesHaveTheIdsOfAllPasses) {
  write_wide_deep();
  const Report report = run({"micro_batch=16"});
  const std::vector<Json> lookups = rows_of(report, "Gather", "deep");
  EXPECT_EQ(lookups.size(), 3u) << "first, middle and last micro-batches";
  for (const Json& row : lookups) {
    EXPECT_EQ(row["ids"], all_ids / 4);
    EXPECT_LT(row["unique"], unique_);
    EXPECT_GT(row["unique"], unique_ / 8);
  }
  const std::vector<Json> updates = rows_of(report, "RowsUpdate", "deep");
  ASSERT_EQ(updates.size(), 1u);
  expect_counts(updates[0], all_ids, unique_);
  EXPECT_EQ(updates[0]["bytes"], update_bytes(3, 4, unique_, unique_));
}

TEST_F(TableLogTest, RowsThatCrossAreCountedOnTheHost) {
  write_wide_deep();
  write("policy.toml", R"(policy = 1
devices = { gpu = { use = "emulated:0", memory = "64MiB" } }
rules = [
  { at = "**", on = "gpu" },
  { at = "{wide,deep}.**", on = "cpu", ship = "rows" },
]
)");
  const Report report = run();
  const std::vector<Json> lookups = rows_of(report, "GatherRows", "deep");
  ASSERT_EQ(lookups.size(), 1u);
  expect_counts(lookups[0], all_ids, unique_);
  EXPECT_EQ(lookups[0]["bytes"], unique_ * (8 + 2 * 16));
  const std::vector<Json> updates = rows_of(report, "RowsUpdate", "deep");
  ASSERT_EQ(updates.size(), 1u);
  expect_counts(updates[0], all_ids, unique_);
  EXPECT_EQ(updates[0]["bytes"], update_bytes(3, 4, unique_, unique_));
  for (const Json& row : rows_of(report, "Gather", "")) {
    EXPECT_FALSE(row.contains("ids")) << "looks up packed rows, no table: " << row;
  }
  EXPECT_THAT(train(true), Contains(AllOf(HasSubstr("operators of step 4"), HasSubstr("GatherRows"),
                                          HasSubstr(std::to_string(unique_)))));
}

// Each column of one input looks up a table of its own.
TEST_F(TableLogTest, ColumnsOfIdsAreCountedByThemselves) {
  constexpr std::int64_t batch = 16, tables = 26;
  const std::vector<std::int64_t> ids = zipf_ids(batch * tables, 100);
  write_npz(folder_ / "train.npz",
            {{"dense", HostTensor(TensorType{DType::float32, {batch, 13}})},
             {"categories", HostTensor::from<std::int64_t>({batch, tables}, ids)},
             {"label", clicks(batch)}});
  write("train.toml", "model = \"" + source_folder() + R"(/models/dlrm/model.onnx"
policy = "policy.toml"
batch_size = 16
steps = 1
loss.terms = [ { name = "loss", kind = "binary_cross_entropy", logits = "logits", labels = "label" } ]
optimizer.kind = "adam"
data = { kind = "npz", train.files = [ "train.npz" ] }
)");
  const Report report = run();
  for (std::int64_t table = 0; table < tables; ++table) {
    SCOPED_TRACE(table);
    std::set<std::int64_t> column;
    for (std::int64_t i = 0; i < batch; ++i) {
      column.insert(ids[static_cast<std::size_t>(i * tables + table)]);
    }
    const std::vector<Json> lookups =
        rows_of(report, "Gather", "tables." + std::to_string(table) + ".");
    ASSERT_EQ(lookups.size(), 1u);
    expect_counts(lookups[0], batch, static_cast<std::int64_t>(column.size()));
  }
}

TEST_F(TableLogTest, ComputedIdsAreNotCounted) {
  constexpr std::int64_t batch = 16, width = 8;
  testing::SmallModel model;
  model.input("ids", {batch}, 7).output("logits", {batch, width});
  model.weight("table", {200, width}, 0.1f);
  model.node("Add", "twice", {"ids", "ids"}, "doubled");
  model.node("Gather", "lookup", {"table", "doubled"}, "logits");
  write("model.onnx", model.bytes());
  HostTensor labels(TensorType{DType::int32, {batch}});
  write_npz(
      folder_ / "train.npz",
      {{"ids", HostTensor::from<std::int64_t>({batch}, zipf_ids(batch, 100))}, {"labels", labels}});
  write("train.toml", testing::train_toml());
  const Report report = run();
  EXPECT_EQ(rows_of(report, "Gather", "lookup").size(), 1u);
  EXPECT_EQ(report.json.find("\"ids\""), std::string::npos) << report.json;
  EXPECT_THAT(report.text, Not(HasSubstr("tables, by time")));
}

TEST_F(TableLogTest, TrainingLogsTheStepsThatItTellsOf) {
  write_wide_deep();
  EXPECT_THAT(train(false), Not(Contains(HasSubstr("operators of step"))));
  const std::vector<std::string> messages = train(true);
  for (const int step : {1, 2, 4}) {
    EXPECT_THAT(messages, Contains(AllOf(HasSubstr("operators of step " + std::to_string(step)),
                                         HasSubstr("RowsUpdate"), HasSubstr("UniqueIndices"),
                                         HasSubstr(std::to_string(all_ids)),
                                         HasSubstr(std::to_string(unique_)))));
  }
  EXPECT_THAT(messages, Not(Contains(HasSubstr("operators of step 3"))));
  std::ifstream file(folder_ / "logged/train.log");
  const std::string log(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(log, HasSubstr("operators of step 4"));
}

TEST(CountUnique, TakesNegativeIdsAndThoseOutside) {
  std::vector<std::int64_t> ids{0, 9, -1, 12, 3, 3, -40};  // rows 0, 9, 9, 9, 3, 3, 0
  EXPECT_EQ(count_unique(ids, 10), 3);
  std::vector<std::int64_t> few{5, -1, std::int64_t{1} << 40, 5};  // ids of a table with many rows
  EXPECT_EQ(count_unique(few, std::int64_t{1} << 32), 2);
  std::vector<std::int64_t> none;
  EXPECT_EQ(count_unique(none, 10), 0);
}

}  // namespace
}  // namespace tandem::api
