// Interrupted runs continue exactly, and only from whole checkpoints.
#include <algorithm>
#include <filesystem>

#include "engine/data/loader.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/one_bad_sample.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::metrics_of;
using testing::Trained;

using ResumeTest = testing::TrainingRun;

const std::vector<std::vector<std::string>> resumable{
    {"optimizer.momentum=0.9"},
    {"optimizer.kind=adamw", "optimizer.schedule={kind=\"cosine\", warmup=\"3 steps\"}",
     "micro_batch=4"},
    {"optimizer.kind=adam", "parameters.freeze=[{at=\"fc1\", until=\"5 steps\"}]",
     "optimizer.clip_norm=0.5"},
};

TEST_F(ResumeTest, ResumeIsBitEqual) {
  eval_ = testing::small_data(7, 9);
  for (std::vector<std::string> keys : resumable) {
    keys.insert(keys.end(), {"steps=11", "eval.every=\"4 steps\"", "eval.metrics=[\"accuracy\"]",
                             "eval.best=\"accuracy\""});
    const Trained whole = run(keys);
    for (const std::uint64_t stop : {1, 4, 5, 6, 10}) {
      const Trained stopped = run(keys, stop);
      ASSERT_TRUE(stopped.result.interrupted);
      EXPECT_EQ(stopped.result.steps, stop);
      EXPECT_FALSE(fs::exists(stopped.result.run_dir + "/summary.json"));
      const Trained resumed = run(keys, 0, stopped.result.run_dir);
      EXPECT_THAT(resumed.messages, ::testing::Contains("resumed at step " + std::to_string(stop)));
      EXPECT_EQ(resumed.result.steps, 11u);
      EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "")
          << keys[0] << " at " << stop;
      EXPECT_EQ(metrics_of(resumed.result.run_dir), metrics_of(whole.result.run_dir))
          << keys[0] << " at " << stop;
      EXPECT_TRUE(fs::exists(resumed.result.run_dir + "/summary.json"));
    }
  }
}

TEST_F(ResumeTest, WhatIsFrozenFromAStepOnStaysSo) {
  const std::vector<std::string> keys{"steps=9", "optimizer.kind=adam",
                                      "parameters.freeze=[{at=\"fc1\", from=\"5 steps\"}]"};
  const Trained whole = run(keys), until_then = run(keys, 5);
  const auto read = [](const Trained& run, const std::string& name) {
    const HostTensor tensor = run.training->states().read(name);
    const auto values = tensor.as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(read(whole, "fc1.weight"), read(until_then, "fc1.weight"));
  EXPECT_NE(read(whole, "fc2.weight"), read(until_then, "fc2.weight"));
  const Trained before = run(keys, 4);
  EXPECT_NE(read(before, "fc1.weight"), read(until_then, "fc1.weight"));
  for (const std::uint64_t stop : {4, 5, 7}) {
    const Trained stopped = run(keys, stop);
    const Trained resumed = run(keys, 0, stopped.result.run_dir);
    for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
      EXPECT_EQ(read(resumed, name), read(whole, name)) << name << " at " << stop;
    EXPECT_EQ(metrics_of(resumed.result.run_dir), metrics_of(whole.result.run_dir)) << stop;
  }
  EXPECT_THAT(testing::error_text([&] {
                run({"steps=9", "parameters.freeze=[{at=\"**\", from=\"5 steps\"}]"});
              }),
              ::testing::AllOf(HasSubstr("nothing to train"), HasSubstr("\"**\" from 5 steps")));
}

TEST_F(ResumeTest, AnInterruptedEvaluationIsMadeUpFor) {
  eval_ = testing::small_data(7, 9);
  const std::vector<std::string> keys{"steps=6", "eval.every=\"2 steps\"", "batch_size=4",
                                      "eval.metrics=[\"accuracy\"]", "eval.best=\"accuracy\""};
  const Trained whole = run(keys);
  // Runs ask between the two micro-batches of each evaluation and after each step.
  for (const int stop : {2, 8}) {
    int asked = 0;
    testing::Hooks hooks;
    hooks.stop_requested = [&] { return ++asked >= stop; };
    Training training(testing::small_config(folder_.path(), keys), engine_.parts(),
                      DataSets{train_, eval_}, hooks.observer());
    const TrainingResult stopped = training.run("", {});
    EXPECT_TRUE(stopped.interrupted);
    EXPECT_EQ(asked, stop);
    EXPECT_EQ(stopped.steps, stop == 2 ? 2u : 6u);
    EXPECT_FALSE(fs::exists(stopped.run_dir + "/summary.json"));
    const std::size_t missing = stop == 2 ? 3 + 4 : 1;  // evaluations and steps
    EXPECT_EQ(metrics_of(stopped.run_dir).size() + missing,
              metrics_of(whole.result.run_dir).size());
    const Trained resumed = run(keys, 0, stopped.run_dir);
    EXPECT_FALSE(resumed.result.interrupted);
    EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
    EXPECT_EQ(metrics_of(stopped.run_dir), metrics_of(whole.result.run_dir));
    EXPECT_TRUE(fs::exists(stopped.run_dir + "/summary.json"));
  }
}

TEST_F(ResumeTest, ABrokenCheckpointIsNamedAndTheOneBeforeUsed) {
  const std::vector<std::string> keys{"steps=9", "checkpoint.every=\"2 steps\"",
                                      "checkpoint.keep=2", "optimizer.momentum=0.9"};
  const Trained whole = run(keys);
  const Trained stopped = run(keys, 7);
  const std::string checkpoints = stopped.result.run_dir + "/checkpoints";
  EXPECT_THAT(list_checkpoints(checkpoints), ElementsAre("step-00000006", "step-00000007"));
  fs::resize_file(checkpoints + "/step-00000007/optimizer.safetensors", 20);
  const Trained resumed = run(keys, 0, stopped.result.run_dir);
  EXPECT_THAT(resumed.messages,
              ::testing::Contains(HasSubstr("checkpoint step-00000007 is broken")));
  EXPECT_THAT(resumed.messages, ::testing::Contains("resumed at step 6"));
  EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
  EXPECT_EQ(metrics_of(resumed.result.run_dir), metrics_of(whole.result.run_dir));
  EXPECT_THAT(list_checkpoints(checkpoints), ElementsAre("step-00000008", "step-00000009"));
}

TEST_F(ResumeTest, WithoutAWholeCheckpointTheRunStartsAgain) {
  const Trained stopped = run({}, 3);
  fs::remove(stopped.result.run_dir + "/checkpoints/step-00000003/manifest.json");
  const Trained resumed = run({}, 0, stopped.result.run_dir);
  EXPECT_THAT(resumed.messages, ::testing::Contains(HasSubstr("starting from the beginning")));
  const Trained whole = run({});
  EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
  EXPECT_EQ(metrics_of(resumed.result.run_dir).size(), 6u);
}

TEST_F(ResumeTest, WhatAKilledSaveLeftIsRemovedFirst) {
  const Trained done = run({"steps=3"});
  const fs::path left = fs::path(done.result.run_dir) / "checkpoints/step-00000009.new";
  fs::create_directories(left);
  run({"steps=3"}, 0, done.result.run_dir);  // saves nothing
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(ResumeTest, AFinishedRunGoesOnWithMoreSteps) {
  const Trained first = run({"steps=4"});
  const Trained more = run({"steps=6"}, 0, first.result.run_dir);
  const Trained whole = run({"steps=6"});
  EXPECT_EQ(testing::difference(more.training->states(), whole.training->states()), "");
}

TEST_F(ResumeTest, ARunAtItsEndHasNothingLeftToDo) {
  const Trained first = run({"steps=6"});
  const auto metrics = metrics_of(first.result.run_dir);
  const Trained again = run({"steps=3"}, 0, first.result.run_dir);
  EXPECT_THAT(
      again.messages,
      ::testing::Contains("nothing left to do: the run is at step 6 of 3; it continues with "
                          "more steps or epochs"));
  EXPECT_EQ(again.result.steps, 6u);
  EXPECT_EQ(again.result.loss, first.result.loss);
  EXPECT_EQ(metrics_of(first.result.run_dir), metrics);
  EXPECT_TRUE(fs::exists(first.result.run_dir + "/summary.json"));
  fs::resize_file(first.result.run_dir + "/metrics.jsonl", 0);
  EXPECT_TRUE(std::isnan(run({"steps=3"}, 0, first.result.run_dir).result.loss));
}

TEST_F(ResumeTest, AnEvaluationThatWasLoggedIsNotLoggedAgain) {
  eval_ = testing::small_data(7, 9);
  const Trained first = run({"steps=4", "eval.every=\"2 steps\""});
  fs::remove(first.result.run_dir + "/summary.json");  // as if killed just before it
  const Trained again = run({"steps=4", "eval.every=\"2 steps\""}, 0, first.result.run_dir);
  EXPECT_EQ(metrics_of(first.result.run_dir).size(), 6u);
  EXPECT_FALSE(again.result.evaluation.empty());
  EXPECT_TRUE(fs::exists(first.result.run_dir + "/summary.json"));
}

TEST_F(ResumeTest, AnotherOptimizerCannotResume) {
  const Trained stopped = run({}, 3);
  EXPECT_THAT(testing::error_text([&] { run({"optimizer.kind=adam"}, 0, stopped.result.run_dir); }),
              HasSubstr("another kind of optimizer, which may not change on resume: expected sgd, "
                        "got adam"));
}

// States of the same names mean something else in another kind of optimizer.
TEST_F(ResumeTest, AKindWithTheSameStatesCannotResume) {
  const std::vector<std::pair<std::string, std::string>> same_states{
      {"adam", "adamw"}, {"adam", "lamb"}, {"lazy_adam", "adam"}, {"ftrl", "group_ftrl"}};
  for (const auto& [then, now] : same_states) {
    const std::string path = folder_ / (then + "-" + now);
    const auto keys = [&](const std::string& kind) {
      return std::vector<std::string>{
          "run_dir=\"" + path + "\"",
          "optimizer.groups=[{at=\"*:weight\", kind=\"" + kind + "\"}]"};
    };
    run(keys(then), 3);
    const auto metrics = metrics_of(path).size();
    const std::string refused = testing::error_text([&] { run(keys(now), 0, path); });
    EXPECT_THAT(refused,
                HasSubstr("optimizer.groups.0.kind: the run has trained \"fc1:weight\" and "
                          "1 more with another kind of optimizer"));
    EXPECT_THAT(refused, HasSubstr("expected " + then + ", got " + now));
    EXPECT_THAT(refused, HasSubstr("start a new run without --resume"));
    EXPECT_EQ(metrics_of(path).size(), metrics);  // nothing was cut
    EXPECT_EQ(run(keys(then), 0, path).result.steps, 6u);
  }
}

TEST_F(ResumeTest, NumbersOfAnOptimizerMayChange) {
  const Trained stopped = run({"optimizer.kind=adamw"}, 3);
  const Trained resumed = run({"optimizer.kind=adamw", "optimizer.lr=0.5",
                               "optimizer.weight_decay=0.2", "optimizer.beta1=0.8"},
                              0, stopped.result.run_dir);
  EXPECT_EQ(resumed.result.steps, 6u);
}

// The seed draws which samples are held out.
TEST_F(ResumeTest, AnotherSeedCannotResume) {
  const Trained stopped = run({"seed=5"}, 3);
  const auto metrics = metrics_of(stopped.result.run_dir).size();
  const std::string refused =
      testing::error_text([&] { run({"seed=6"}, 0, stopped.result.run_dir); });
  EXPECT_THAT(refused, ::testing::AllOf(HasSubstr("seed: the run was started with another seed"),
                                        HasSubstr("expected 5, got 6"), HasSubstr("seed = 5")));
  EXPECT_EQ(metrics_of(stopped.result.run_dir).size(), metrics);  // nothing was cut
  EXPECT_GT(run({"seed=5"}, 0, stopped.result.run_dir).result.steps, 3u);
}

TEST_F(ResumeTest, AnotherHeldOutPartCannotResume) {
  const auto holding = [](const std::string& part) {
    return std::vector<std::string>{
        "data={kind=\"npz\", train={files=[\"x.npz\"]}, eval={fraction=" + part + "}}"};
  };
  const Trained stopped = run(holding("0.1"), 3);
  const std::string refused =
      testing::error_text([&] { run(holding("0.25"), 0, stopped.result.run_dir); });
  EXPECT_THAT(refused, HasSubstr("data.eval.fraction: the run was started with another held-out "
                                 "part: expected 0.1, got 0.25"));
  EXPECT_GT(run(holding("0.1"), 0, stopped.result.run_dir).result.steps, 3u);
}

TEST_F(ResumeTest, AnOptimizerWithFewerStatesCannotResume) {
  const Trained stopped = run({"optimizer.kind=adam"}, 3);
  const auto metrics = metrics_of(stopped.result.run_dir).size();
  EXPECT_THAT(testing::error_text([&] {
                run({"optimizer.kind=sgd", "optimizer.momentum=0"}, 0, stopped.result.run_dir);
              }),
              HasSubstr("expected adam, got sgd"));
  EXPECT_EQ(metrics_of(stopped.result.run_dir).size(), metrics);  // nothing was cut
}

TEST_F(ResumeTest, WhatWasTrainedStaysWhereASampleCannotBeRead) {
  const std::string path = folder_ / "run";
  const std::shared_ptr<const DataSource> good = train_;
  for (const char* micro_batches : {"micro_batch=8", "micro_batch=2"}) {
    fs::remove_all(path);
    const std::vector<std::string> keys{"run_dir=\"" + path + "\"", "steps=5",
                                        "optimizer.momentum=0.9", micro_batches};
    train_ = good;
    const Trained whole = run({"steps=5", keys[2], micro_batches});
    const std::uint64_t seed = testing::small_config(folder_.path(), keys).seed;
    const std::int64_t bad = epoch_order(good->samples(), {}, seed, 0)[15];  // step 2 ends with it
    train_ = std::make_shared<testing::OneBadSample>(good, bad);
    EXPECT_THAT(testing::error_text([&] { run(keys); }), HasSubstr("cannot be read"));
    EXPECT_THAT(list_checkpoints(path + "/checkpoints"), ElementsAre(checkpoint_name(1)));
    train_ = good;
    const Trained resumed = run(keys, 0, path);
    EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "")
        << micro_batches;
  }
}

}  // namespace
}  // namespace tandem
