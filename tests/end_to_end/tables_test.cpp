// Tables far larger than their model file: rows beyond 2^31, memory of the process, checkpoints by
// rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "api/model/model.h"
#include "engine/train/loop/trainer.h"
#include "tests/end_to_end/table_model.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/test_hooks.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t mib = 1 << 20;

std::int64_t status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}
// The peak of memory since the last reset.
std::int64_t peak_bytes() { return status_bytes("VmHWM"); }
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Trains the rows `ids` of a table towards targets, the same batch in every step.
class TableRun {
 public:
  TableRun(const TemporaryFolder& folder, std::int64_t rows, std::int64_t columns,
           const std::vector<std::int64_t>& ids, const std::vector<float>& targets,
           const std::vector<std::string>& more = {}) {
    const auto batch = static_cast<std::int64_t>(ids.size());
    write_table_model(folder / "table.onnx", columns);
    std::vector<std::string> settings{
        "batch_size=" + std::to_string(batch),
        "parameters.shape=[{at=\"table:weight\", rows=" + std::to_string(rows) + "}]",
        "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
        "optimizer.kind=sgd",
        "data={kind=\"npz\", train={files=[\"none.npz\"], shuffle=\"none\"}, "
        "fields={ids=\"ids\", t=\"t\"}}"};
    settings.insert(settings.end(), more.begin(), more.end());
    config_ =
        parse_run_config("model = \"table.onnx\"\nsteps = 3\n", folder / "train.toml", settings);
    engine_ = std::make_unique<api::Engine>();
    model_ = std::make_unique<api::PlacedModel>(*engine_, config_);
    HostTensor wanted(TensorType{DType::float32, {batch, columns}});
    for (std::int64_t i = 0; i < wanted.type().elements(); ++i)
      wanted.as<float>()[i] = targets[i / columns];
    const DataSets data{
        make_array_source({{"ids", HostTensor::from<std::int64_t>({batch}, ids)}, {"t", wanted}}),
        nullptr};
    Hooks hooks;
    hooks.on_message = [this](const std::string& text) { messages += text + "\n"; };
    training_ = std::make_unique<Training>(config_, model_->run_parts(), data, hooks.observer());
  }
  Training& training() { return *training_; }
  float value(std::int64_t row) {
    std::vector<float> numbers(row_count_columns());
    training_->states().read_rows("table.weight", row, 1, numbers.data());
    return numbers[0];
  }
  /// The planned memory: table, states and everything else that a step needs.
  std::int64_t planned_bytes() const {
    return static_cast<std::int64_t>(training_->main_program().program->plan().memory.at(0).peak);
  }
  std::string messages;

 private:
  std::size_t row_count_columns() {
    return static_cast<std::size_t>(training_->states().type("table.weight").shape[1]);
  }
  RunConfig config_;
  std::unique_ptr<api::Engine> engine_;
  std::unique_ptr<api::PlacedModel> model_;
  std::unique_ptr<Training> training_;
};

// mse over 4 elements with lr 1: a step halves the distance to the target, exactly.
TEST(Tables, RowsBeyond31BitsAreFoundAndUpdated) {
  constexpr std::int64_t limit = std::int64_t{1} << 31, rows = limit + 1000;
  const std::vector<std::int64_t> ids{limit, 0, rows - 1, limit - 1};
  const std::vector<float> targets{1, 2, 4, 8};
  TemporaryFolder folder;
  reset_peak();
  const std::int64_t before = status_bytes("VmRSS");
  TableRun run(folder, rows, 1, ids, targets, {"optimizer.lr=1.0"});
  EXPECT_THAT(run.messages, ::testing::HasSubstr("table:weight starts at zeros"));
  EXPECT_GT(run.planned_bytes(), 8 << 30 >> 1);
  run.training().run_steps(3, [](double) {});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(run.value(ids[i]), 0.875f * targets[i]) << ids[i];
  }
  for (const std::int64_t row : {std::int64_t{1}, limit - 2, limit + 1, rows - 2}) {
    EXPECT_EQ(run.value(row), 0) << row;
  }
  const std::int64_t growth = peak_bytes() - before;
  std::printf("memory of the process grew by %.1f MiB\n", static_cast<double>(growth) / mib);
  EXPECT_LE(growth, 1024 * mib);
}

TEST(Tables, HaveARowForEachWordOfAVocabulary) {
  TemporaryFolder folder;
  write_table_model(folder / "table.onnx", 2);
  const auto rows_for = [&](const std::string& field) {
    const RunConfig config = parse_run_config(
        "model = \"table.onnx\"\nsteps = 1\nbatch_size = 2\n", folder / "train.toml",
        {"parameters.shape=[{at=\"table:weight\", rows=\"vocabulary(" + field + ")\"}]",
         "loss.terms=[{name=\"mse\", kind=\"mse\", predictions=\"y\", targets=\"t\"}]",
         "optimizer.kind=sgd",
         "data={kind=\"tsv\", columns=[\"label\", \"word\"], train={files=[\"train.tsv\"]}, "
         "fields={ids={from=\"word\", as=[\"vocabulary(min_count=1)\"]}}}"});
    const api::Engine engine(1);
    api::ConfiguredModel model(engine, config);
    return model.imported(2, true).graph.find_state("table.weight")->start.shape()[0];
  };
  std::ofstream(folder / "train.tsv") << "1\ty\n2\tx\n3\tz\n4\tx\n";
  EXPECT_EQ(rows_for("ids"), 4);  // x, y, z, and one for unknown words
  try {
    rows_for("words");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("this is no field with a vocabulary"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("one of ids"));
  }
}

TEST(LongTables, FourGibibytesTrainAndResumeWithoutASecondCopy) {
  constexpr std::int64_t rows = 13'500'000, columns = 80;
  constexpr std::int64_t table = rows * columns * 4;  // 4.02 GiB
  const std::vector<std::int64_t> ids{0, 7, rows - 1, rows / 2};
  const std::vector<float> targets{1, 2, 4, 8};
  TemporaryFolder folder;
  const std::vector<std::string> settings{
      "optimizer.lr=1.0", "run_dir=\"" + folder / "run" + "\"", "checkpoint.keep=1",
      "parameters.init=[{at=\"table:weight\", kind=\"normal\", std=0.01}]"};
  std::vector<float> after_two, resumed;
  const auto start = std::chrono::steady_clock::now();
  const auto expect_peak = [&](const char* what, std::int64_t before, std::int64_t planned) {
    const std::int64_t growth = peak_bytes() - before;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%s after %.1f s: peak %.0f MiB over a plan of %.0f MiB\n", what, seconds,
                static_cast<double>(growth - planned) / mib, static_cast<double>(planned) / mib);
    EXPECT_LE(planned, static_cast<std::int64_t>(1.05 * table) + 16 * mib);
    EXPECT_LE(growth, planned + 300 * mib) << what;
  };
  const auto values = [&](TableRun& run) {
    std::vector<float> all;
    for (const std::int64_t id : ids) all.push_back(run.value(id));
    for (std::int64_t row = 1; row < rows; row += 1'234'567) all.push_back(run.value(row));
    return all;
  };
  {
    reset_peak();
    const std::int64_t before = status_bytes("VmRSS");
    std::vector<std::string> two = settings;
    two.push_back("steps=2");
    TableRun run(folder, rows, columns, ids, targets, two);
    expect_peak("initialised", before, run.planned_bytes());
    run.training().run("", {});
    expect_peak("trained and saved", before, run.planned_bytes());
    after_two = values(run);
  }
  EXPECT_TRUE(std::filesystem::exists(
      folder / "run/checkpoints/step-00000002/model.table1-00001-of-00005.safetensors"));
  std::filesystem::remove(folder / "run/summary.json");
  reset_peak();
  const std::int64_t before = status_bytes("VmRSS");
  std::vector<std::string> again = settings;
  again[3] = "parameters.init=[{at=\"table:weight\", kind=\"ones\"}]";  // the checkpoint's are used
  again.push_back("steps=2");
  TableRun run(folder, rows, columns, ids, targets, again);
  run.training().run(folder / "run", {});
  expect_peak("resumed", before, run.planned_bytes());
  EXPECT_EQ(values(run), after_two);
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_NEAR(after_two[i], targets[i], targets[i]);
}

}  // namespace
}  // namespace tandem::testing
