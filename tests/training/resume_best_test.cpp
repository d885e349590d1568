// Best and patience of runs that were interrupted within an evaluation and then killed before any
// operation on files: what is left is the old or the new state, and a resumed run gives what an
// uninterrupted run gives.
#include <filesystem>
#include <fstream>

#include "engine/formats/files.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::Trained;
using Keys = std::vector<std::string>;

class ResumeBestTest : public testing::TrainingRun {
 protected:
  void SetUp() override { eval_ = testing::small_data(7, 9); }
  void TearDown() override { set_file_hook({}); }

  static Keys with(Keys keys, const Keys& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }
  /// Stops between the two micro-batches of the evaluation of this step.
  std::string stopped_in_evaluation(const Keys& keys, std::uint64_t step) {
    std::uint64_t done = 0;
    testing::Hooks hooks;
    hooks.on_progress = [&](const TrainingProgress& p) { done = p.step; };
    hooks.stop_requested = [&] { return done == step; };
    Training training(testing::small_config(folder_.path(), keys), engine_.parts(),
                      DataSets{train_, eval_}, hooks.observer());
    const TrainingResult stopped = training.run("", {});
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_EQ(stopped.steps, step);
    return stopped.run_dir;
  }
  /// What would be left if a resumed run were killed before each of its file operations.
  std::vector<std::string> killed(const Keys& keys, const std::string& run_dir) {
    std::vector<std::string> left;
    const std::string lives = folder_ / "lives";
    fs::copy(run_dir, lives, fs::copy_options::recursive);
    set_file_hook([&](std::string_view, std::string_view) {
      left.push_back(folder_ / ("killed-" + std::to_string(left.size())));
      fs::copy(lives, left.back(), fs::copy_options::recursive);
    });
    run(keys, 0, lives);
    set_file_hook({});
    fs::remove_all(lives);
    EXPECT_GT(left.size(), 10u);
    return left;
  }
  static std::string best_of(const std::string& run_dir) {
    const std::string path = run_dir + "/checkpoints/best";
    return fs::exists(path) ? testing::lines_of(path).at(0) : "";
  }
  /// state.json of the newest checkpoint.
  static std::string last_position(const std::string& run_dir) {
    const std::string folder = run_dir + "/checkpoints";
    return read_file(folder + "/" + list_checkpoints(folder).back() + "/state.json");
  }
  static nlohmann::json summary_of(const std::string& run_dir) {
    std::ifstream file(run_dir + "/summary.json");
    nlohmann::json summary = nlohmann::json::parse(file);
    summary.erase("wall");
    return summary;
  }
  /// Stops in the evaluation of `step`, then resumes, kills and resumes, `times` times.
  void expect_as_uninterrupted(const Keys& keys, std::uint64_t step, int times = 1) {
    const Trained whole = run(keys);
    const std::string expected = whole.result.run_dir;
    for (const std::string& left : killed(keys, stopped_in_evaluation(keys, step))) {
      SCOPED_TRACE(left);
      const std::string best = best_of(left);
      EXPECT_TRUE(best.empty() || fs::exists(left + "/checkpoints/" + best)) << best;
      for (int again = 0; again < times; ++again) {
        const Trained resumed = run(keys, 0, left);
        EXPECT_EQ(resumed.result.steps, whole.result.steps);
        EXPECT_EQ(best_of(left), best_of(expected));
        EXPECT_EQ(summary_of(left), summary_of(expected));
        EXPECT_EQ(testing::metrics_of(left), testing::metrics_of(expected));
        EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
        EXPECT_EQ(last_position(left), last_position(expected));
      }
      fs::remove_all(left);
      if (HasFailure()) return;
    }
  }

  const Keys keys_{"batch_size=4", "eval.every=\"2 steps\"", "eval.metrics=[\"loss\"]",
                   "eval.best=loss", "checkpoint.keep=1"};
};

TEST_F(ResumeBestTest, ABetterEvaluationIsNotForgotten) {
  for (const std::uint64_t step : {4, 6})
    expect_as_uninterrupted(with(keys_, {"steps=6", "optimizer.lr=0.05"}), step);
}

// The best is that of step 2, found again, although later ones are worse.
TEST_F(ResumeBestTest, AWorseEvaluationDoesNotTakeItsPlace) {
  for (const std::uint64_t step : {4, 6})
    expect_as_uninterrupted(
        with(keys_, {"steps=6", "optimizer.lr=3.0", "checkpoint.every=\"1 steps\""}), step);
}

TEST_F(ResumeBestTest, PatienceThatRanOutStaysSo) {
  for (const std::uint64_t step : {4, 6})
    expect_as_uninterrupted(with(keys_, {"steps=20", "optimizer.lr=0.0", "eval.patience=2"}), step,
                            2);
}

// A system may lose the metrics that it has not yet written; then the checkpoint knows more.
TEST_F(ResumeBestTest, AnEvaluationThatTheLogLostIsNotCountedTwice) {
  const Keys keys = with(keys_, {"optimizer.lr=0.0", "eval.patience=3"});
  const Trained first = run(with(keys, {"steps=4"}));
  const std::string metrics = first.result.run_dir + "/metrics.jsonl";
  const auto lines = testing::lines_of(metrics);
  std::string kept;
  for (std::size_t i = 0; i + 2 < lines.size(); ++i) kept += lines[i] + "\n";
  write_file(metrics, kept);
  EXPECT_EQ(run(with(keys, {"steps=100"}), 0, first.result.run_dir).result.steps, 8u);
}

}  // namespace
}  // namespace tandem
