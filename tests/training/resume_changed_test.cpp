// Runs that are resumed with other keys: batch_size, eval.best, eval.patience.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/updates/learning_rate_factors.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Trained;
using Keys = std::vector<std::string>;
using Json = nlohmann::json;

class ResumeChangedTest : public testing::TrainingRun {
 protected:
  static Keys with(Keys keys, const Keys& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }
  static std::vector<std::uint64_t> steps_of(const std::vector<TrainingProgress>& progress) {
    std::vector<std::uint64_t> steps;
    for (const TrainingProgress& p : progress) steps.push_back(p.step);
    return steps;
  }
  static Json json_of(const std::string& path) {
    std::ifstream file(path);
    return Json::parse(file);
  }
};

// ---------------------------------------------------------------- another batch size

/// 22 samples: 3 steps an epoch of batches of 8, 6 of 4, 2 of 16.
struct OtherBatch {
  std::string name;
  std::uint64_t stop;  // steps of 8 after which the run stops
  Keys keys;
  std::uint64_t steps, samples;
};
void PrintTo(const OtherBatch& c, std::ostream* stream) { *stream << c.name; }

class OtherBatchTest : public ResumeChangedTest,
                       public ::testing::WithParamInterface<OtherBatch> {};

TEST_P(OtherBatchTest, TheRunEndsWithItsSamples) {
  const OtherBatch& c = GetParam();
  const Keys before{"epochs=2", "steps=1000"}, keys = with(before, c.keys);
  const Trained stopped = run(before, c.stop);
  const Trained resumed = run(keys, 0, stopped.result.run_dir);
  EXPECT_EQ(resumed.result.steps, c.steps);
  EXPECT_EQ(json_of(stopped.result.run_dir + "/summary.json")["samples"], c.samples);
  EXPECT_THAT(resumed.messages, Contains(HasSubstr("batch_size changed from 8 to ")));
  EXPECT_THAT(resumed.messages,
              Contains(HasSubstr("the run ends at step " + std::to_string(c.steps))));
  ASSERT_FALSE(resumed.steps.empty());
  EXPECT_EQ(resumed.steps.back().steps, c.steps);
  EXPECT_THAT(run(keys, 0, stopped.result.run_dir).messages,
              Contains(HasSubstr("nothing left to do")));
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, OtherBatchTest,
    ::testing::Values(OtherBatch{"smaller", 3, {"batch_size=4"}, 3 + 6, 44},
                      OtherBatch{"larger", 3, {"batch_size=16"}, 3 + 2, 44},
                      OtherBatch{"smaller_within_an_epoch", 1, {"batch_size=4"}, 1 + 4 + 6, 44},
                      OtherBatch{"larger_within_an_epoch", 1, {"batch_size=16"}, 1 + 1 + 2, 44},
                      OtherBatch{"whole_data", 2, {"batch_size=22"}, 2 + 1 + 1, 44},
                      OtherBatch{"part_of_an_epoch", 3, {"batch_size=4", "epochs=1.5"}, 3 + 3, 34},
                      OtherBatch{"steps", 3, {"batch_size=4", "steps=5"}, 5, 22 + 8}),
    [](const auto& info) { return info.param.name; });

TEST_F(ResumeChangedTest, EpochsFollowTheDataAndStepsTheirNumber) {
  eval_ = testing::small_data(7, 9);
  const Keys keys{"epochs=4", "steps=1000", "checkpoint.every=\"5 steps\"", "checkpoint.keep=0"};
  const Trained stopped = run(keys, 4);
  const Trained resumed =
      run(with(keys, {"batch_size=4", "eval.every=\"1 epoch\""}), 0, stopped.result.run_dir);
  // 14 samples are left of the second epoch: 4 steps, then 6 for each of two epochs.
  EXPECT_THAT(steps_of(resumed.evaluations), ElementsAre(8, 14, 20));
  EXPECT_THAT(list_checkpoints(stopped.result.run_dir + "/checkpoints"),
              ElementsAre("step-00000004", "step-00000005", "step-00000010", "step-00000015",
                          "step-00000020"));
  for (const TrainingProgress& p : resumed.steps) EXPECT_DOUBLE_EQ(p.epochs, 4);
  EXPECT_DOUBLE_EQ(resumed.steps[3].epoch, 2);
  EXPECT_DOUBLE_EQ(resumed.steps.back().epoch, 4);
}

TEST_F(ResumeChangedTest, RatesGoOnFromTheSamePartOfTheRun) {
  const Keys keys{"epochs=4", "steps=1000", "optimizer.schedule={kind=\"cosine\", final=0.0}"};
  const auto cosine = [](double part) { return 0.1 * (1 + std::cos(M_PI * part)) / 2; };
  const Trained stopped = run(keys, 6);
  EXPECT_NEAR(stopped.all("lr").back(), cosine(5 / 12.0), 1e-12);
  const Trained resumed = run(with(keys, {"batch_size=4"}), 4 + 6, stopped.result.run_dir);
  EXPECT_NEAR(resumed.all("lr")[0], cosine(12 / 24.0), 1e-12);
  EXPECT_NEAR(resumed.all("lr")[3], cosine(15 / 24.0), 1e-12);
  // Steps made with this batch size are not distinguished from those made with another one.
  const Trained again = run(with(keys, {"batch_size=4"}), 0, stopped.result.run_dir);
  EXPECT_NEAR(again.all("lr")[0], cosine(16 / 24.0), 1e-12);
  EXPECT_EQ(again.result.steps, 6u + 12);
  EXPECT_NEAR(again.all("lr").back(), cosine(23 / 24.0), 1e-12);
}

TEST_F(ResumeChangedTest, InterruptedAgainItGoesOnExactly) {
  const Keys keys{"epochs=3", "steps=1000", "optimizer.momentum=0.9",
                  "optimizer.schedule={kind=\"linear\", warmup=\"1 epoch\", final=0.01}",
                  "parameters.freeze=[{at=\"fc1\", until=\"2 epochs\"}]"};
  const Keys other = with(keys, {"batch_size=4"});
  const Trained stopped = run(keys, 2);
  const std::string copy = folder_ / "copy";
  fs::copy(stopped.result.run_dir, copy, fs::copy_options::recursive);
  const Trained whole = run(other, 0, stopped.result.run_dir);
  EXPECT_EQ(whole.result.steps, 2u + 2 + 12);
  for (const std::uint64_t stop : {3, 4, 9, 10, 13}) run(other, stop, copy);
  const Trained resumed = run(other, 0, copy);
  EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
  EXPECT_EQ(testing::metrics_of(copy), testing::metrics_of(stopped.result.run_dir));
}

// 1.5 epochs are 9 steps of 4, and 2 of 22: step 10 trains what 22 would freeze until the epoch
// ends.
TEST_F(ResumeChangedTest, WhatHasThawedStaysThawed) {
  const std::string freeze = "parameters.freeze=[{at=\"fc1\", until=\"1.5 epochs\"}]";
  const Keys keys{"epochs=4", "steps=1000", "optimizer.momentum=0.9"};
  const Trained stopped = run(with(keys, {freeze, "batch_size=4"}), 10);
  const HostTensor start = stopped.training->states().read("fc1.weight");
  const std::string copy = folder_ / "copy";
  fs::copy(stopped.result.run_dir, copy, fs::copy_options::recursive);
  const Trained resumed = run(with(keys, {freeze, "batch_size=22"}), 11, stopped.result.run_dir);
  EXPECT_FALSE(testing::same_bytes(resumed.training->states().read("fc1.weight"), start));
  // As without the rule: with the momentum of step 10.
  const Trained never = run(with(keys, {"batch_size=22"}), 11, copy);
  EXPECT_EQ(testing::difference(resumed.training->states(), never.training->states()), "");
  // Another end is another rule.
  const Trained again =
      run(with(keys, {"parameters.freeze=[{at=\"fc1\", until=\"4 epochs\"}]", "batch_size=22"}), 12,
          stopped.result.run_dir);
  EXPECT_TRUE(testing::same_bytes(again.training->states().read("fc1.weight"),
                                  resumed.training->states().read("fc1.weight")));
}

// 1.5 epochs are 2 steps of 22, and 9 of 4: 4 would have thawed before step 2, of which the
// checkpoint has no momentum.
TEST_F(ResumeChangedTest, WhatTheLastStepFrozeMayThawWithAnotherBatch) {
  const Keys keys{"epochs=4", "steps=1000", "optimizer.momentum=0.9",
                  "parameters.freeze=[{at=\"fc1\", until=\"1.5 epochs\"}]"};
  const Trained stopped = run(with(keys, {"batch_size=22"}), 2);
  const HostTensor start = stopped.training->states().read("fc1.weight");
  const Trained resumed = run(with(keys, {"batch_size=4"}), 3, stopped.result.run_dir);
  EXPECT_FALSE(testing::same_bytes(resumed.training->states().read("fc1.weight"), start));
}

TEST(RunLengthTest, AWarmUpInStepsThatIsOverStaysOver) {
  ScheduleConfig config;
  config.kind = LinearSchedule{};
  config.warmup = Duration{4, Duration::Unit::steps};
  // Resumed at step 6, half of the data, with twice the batch: 3 of 6 steps.
  const Schedule schedule(config, 1,
                          {.steps_per_epoch = 6, .steps = 9, .origin = 3, .ends_by_epochs = true});
  EXPECT_DOUBLE_EQ(schedule.factor(4), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(7), 1);
  EXPECT_DOUBLE_EQ(schedule.factor(9), 0.5);
}

// ---------------------------------------------------------------- another best

TEST_F(ResumeChangedTest, AnotherMetricStartsBestAndPatienceAnew) {
  eval_ = testing::small_data(9, 9);
  const Keys keys{"optimizer.lr=0.0", "eval.every=\"2 steps\"",
                  "eval.metrics=[\"accuracy\", \"loss\"]"};
  const Keys by_accuracy = with(keys, {"eval.best=accuracy", "eval.patience=3"});
  const Keys by_loss = with(keys, {"eval.best=loss", "eval.patience=3"});
  const Trained first = run(with(by_accuracy, {"steps=4"}));
  const std::string run_dir = first.result.run_dir, checkpoints = run_dir + "/checkpoints/";
  const Json saved = json_of(checkpoints + "step-00000004/state.json");
  EXPECT_EQ(saved["best"]["metric"], "accuracy");
  EXPECT_EQ(saved["best"]["better"], "larger");
  EXPECT_EQ(saved["best"]["step"], 2);
  const Trained same = run(with(by_accuracy, {"steps=5"}), 0, run_dir);
  EXPECT_THAT(same.messages, Not(Contains(HasSubstr("eval.best changed"))));
  const Trained other = run(with(by_loss, {"steps=100"}), 0, run_dir);
  EXPECT_THAT(
      other.messages,
      Contains("eval.best changed from accuracy to loss: best and eval.patience start again"));
  EXPECT_EQ(other.result.steps, 12u);  // the best at 6, then three that are not better
  EXPECT_THAT(testing::lines_of(checkpoints + "best"), ElementsAre("step-00000006"));
  const Json summary = json_of(run_dir + "/summary.json");
  EXPECT_EQ(summary["best"]["metric"], "loss");
  EXPECT_EQ(summary["best"]["value"], summary["eval"]["loss"]);
  // At its end: the last evaluation is the first of the new metric.
  const Trained end = run(with(by_accuracy, {"steps=12"}), 0, run_dir);
  EXPECT_THAT(end.messages, Contains(HasSubstr("nothing left to do: the run is at step 12 of 12")));
  EXPECT_THAT(testing::lines_of(checkpoints + "best"), ElementsAre("step-00000012"));
  const Trained none = run(with(keys, {"steps=13"}), 0, run_dir);
  EXPECT_THAT(none.messages, Contains(HasSubstr("eval.best changed from loss to none")));
  EXPECT_FALSE(fs::exists(checkpoints + "best"));
}

// ---------------------------------------------------------------- stopped early

TEST_F(ResumeChangedTest, ARunThatStoppedEarlyIsAtItsEnd) {
  eval_ = testing::small_data(9, 9);
  const Keys keys{"optimizer.lr=0.0", "eval.every=\"2 steps\"", "eval.metrics=[\"loss\"]",
                  "eval.best=loss"};
  const Trained first = run(with(keys, {"steps=100", "eval.patience=1"}));
  EXPECT_THAT(first.messages,
              Contains("stopped early: loss has not improved for 1 evaluations, at step 4"));
  const std::string run_dir = first.result.run_dir;
  const auto metrics = testing::metrics_of(run_dir);
  for (const char* steps : {"steps=100", "steps=200"}) {
    const Trained again = run(with(keys, {steps, "eval.patience=1"}), 0, run_dir);
    EXPECT_THAT(again.messages,
                Contains("nothing left to do: loss has not improved for 1 evaluations, at step 4; "
                         "it continues with a larger eval.patience, 0 or another eval.best"));
    EXPECT_EQ(again.result.steps, 4u);
    EXPECT_FALSE(again.result.interrupted);
    EXPECT_EQ(testing::metrics_of(run_dir), metrics);
    EXPECT_EQ(json_of(run_dir + "/summary.json")["steps"], 4);
  }
  EXPECT_EQ(run(with(keys, {"steps=100", "eval.patience=3"}), 0, run_dir).result.steps, 8u);
  EXPECT_EQ(run(with(keys, {"steps=11"}), 0, run_dir).result.steps, 11u);
}

TEST_F(ResumeChangedTest, AnEvaluationThatIsMadeUpForSaysThatItEndsTheRun) {
  eval_ = testing::small_data(9, 9);
  const Keys keys{
      "optimizer.lr=0.0", "eval.every=\"2 steps\"", "batch_size=8", "eval.metrics=[\"loss\"]",
      "eval.best=loss",   "eval.patience=1",        "steps=100"};
  std::uint64_t step = 0;
  testing::Hooks hooks;
  hooks.on_progress = [&](const TrainingProgress& p) { step = p.step; };
  hooks.stop_requested = [&] {
    return step == 4;
  };  // between the two micro-batches of its evaluation
  Training training(testing::small_config(folder_.path(), keys), engine_.parts(),
                    DataSets{train_, eval_}, hooks.observer());
  const TrainingResult stopped = training.run("", {});
  ASSERT_TRUE(stopped.interrupted);
  ASSERT_EQ(stopped.steps, 4u);
  ASSERT_EQ(testing::metrics_of(stopped.run_dir).size(), 5u);  // one evaluation, four steps
  const Trained resumed = run(keys, 0, stopped.run_dir);
  EXPECT_EQ(resumed.result.steps, 4u);
  EXPECT_THAT(resumed.messages,
              Contains("stopped early: loss has not improved for 1 evaluations, at step 4"));
}

}  // namespace
}  // namespace tandem
