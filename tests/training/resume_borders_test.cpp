// What happens at a border of a run (a thaw, the start of an average, the end of a warm-up or of an
// epoch, a loss scale that grows, an evaluation that lowers the rate) happens whether one process
// crosses it or one ends there and another continues: all that a checkpoint holds has the same
// bits.
#include "engine/formats/files.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using testing::Trained;
using Keys = std::vector<std::string>;

struct Part {
  const char* name;
  Keys keys;
};

/// Each lies after step 3, which also ends the first epoch of 22 samples.
const std::vector<Part> borders{
    {"thaw", {"parameters.freeze=[{at=\"fc1:bias\", until=\"3 steps\"}]"}},
    {"thaw at an epoch", {"parameters.freeze=[{at=\"fc1\", until=\"1 epoch\"}]"}},
    {"freeze", {"parameters.freeze=[{at=\"fc1\", from=\"3 steps\"}]"}},
    {"thaw and freeze",
     {"parameters.freeze=[{at=\"fc1:weight\", until=\"3 steps\"}, {at=\"fc2:bias\", from=\"3 "
      "steps\"}]"}},
    {"two thaws",
     {"parameters.freeze=[{at=\"fc1:weight\", until=\"3 steps\"}, {at=\"fc1:bias\", until=\"4 "
      "steps\"}]"}},
    {"end of a warm-up", {"optimizer.schedule={kind=\"cosine\", warmup=\"3 steps\"}"}},
    {"step of a schedule",
     {"optimizer.schedule={kind=\"step\", step_size=\"3 steps\", gamma=0.5}"}},
    {"plateau",
     {"optimizer.schedule={kind=\"plateau\", patience=0, factor=0.5, threshold=1e6, "
      "threshold_mode=\"abs\"}"}},
    {"growth of a loss scale",
     {"precision.compute=float16", "precision.keep_float32=[\"**\"]", "precision.growth_interval=3",
      "parameters.freeze=[{at=\"fc1\", until=\"3 steps\"}]"}},
};

const std::vector<Part> averages{
    {"none", {}},
    {"ema", {"optimizer.ema={decay=0.9}"}},
    {"ema from the border", {"optimizer.ema={decay=0.8, start=\"3 steps\", warmup=true}"}},
    {"swa", {"optimizer.swa={start=\"1 epoch\", every=\"2 steps\"}", "eval.weights=swa"}},
    {"lookahead", {"optimizer.lookahead={k=3, alpha=0.5}"}},
    {"all",
     {"optimizer.ema={decay=0.9}", "optimizer.swa={start=\"1 steps\", every=\"1 steps\"}",
      "optimizer.lookahead={k=1, alpha=0.5}", "eval.weights=ema"}},
};

const std::vector<Part> optimizers{
    {"sgd", {"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.dampening=0.3"}},
    {"adam", {"optimizer.kind=adam", "optimizer.lr=0.01"}},
    {"adamw, clipped", {"optimizer.kind=adamw", "optimizer.lr=0.01", "optimizer.clip_norm=0.3"}},
    {"nadam", {"optimizer.kind=nadam", "optimizer.lr=0.01"}},
    {"radam", {"optimizer.kind=radam", "optimizer.lr=0.01"}},
    {"adamax", {"optimizer.kind=adamax", "optimizer.lr=0.01"}},
    {"adagrad", {"optimizer.kind=adagrad", "optimizer.lr_decay=0.1"}},
    {"adafactor", {"optimizer.kind=adafactor"}},
    {"lamb", {"optimizer.kind=lamb", "optimizer.lr=0.01", "optimizer.weight_decay=0.1"}},
    {"muon",
     {"optimizer.kind=adamw", "optimizer.lr=0.01",
      "optimizer.groups=[{at=\"*:weight\", kind=\"muon\"}]"}},
    {"schedule_free_adamw",
     {"optimizer.kind=schedule_free_adamw", "optimizer.r=1",
      "optimizer.schedule={kind=\"linear\", warmup=\"3 steps\"}"}},
    {"rmsprop", {"optimizer.kind=rmsprop", "optimizer.lr=0.01"}},
    {"ftrl", {"optimizer.kind=ftrl"}},
    {"group_ftrl",
     {"optimizer.kind=adam", "optimizer.lr=0.01",
      "optimizer.groups=[{at=\"*:weight\", kind=\"group_ftrl\"}]"}},
};

/// "" if two checkpoints hold the same, else what differs.
std::string difference_of_checkpoints(const std::string& a, const std::string& b) {
  const CheckpointContent x = read_checkpoint(a), y = read_checkpoint(b);
  for (const auto member : {&CheckpointContent::model, &CheckpointContent::optimizer}) {
    const std::vector<NamedTensor>&first = x.*member, &second = y.*member;
    if (first.size() != second.size()) return "another number of tensors";
    for (const NamedTensor& tensor : first) {
      const auto same = std::find_if(second.begin(), second.end(), [&](const NamedTensor& other) {
        return other.name == tensor.name;
      });
      if (same == second.end()) return tensor.name + " is missing";
      if (same->tensor.type() != tensor.tensor.type() ||
          std::memcmp(same->tensor.data(), tensor.tensor.data(), tensor.tensor.bytes()) != 0)
        return tensor.name + " differs";
    }
  }
  return read_file(a + "/state.json") == read_file(b + "/state.json") ? "" : "state.json differs";
}

class ResumeBordersTest : public testing::TrainingRun {
 protected:
  void SetUp() override { eval_ = testing::small_data(7, 9); }

  static bool fit(const Part& border, const Part& average) {
    // An average of a frozen parameter would stand still, which the configuration refuses.
    return std::string(border.name).find("freeze") == std::string::npos || average.keys.empty();
  }

  void expect_same(const std::vector<const Part*>& parts, const Keys& more) {
    Keys keys{"steps=7", "eval.every=\"3 steps\""};
    std::string what;
    for (const Part* part : parts) {
      what += std::string(part->name) + ", ";
      keys.insert(keys.end(), part->keys.begin(), part->keys.end());
    }
    keys.insert(keys.end(), more.begin(), more.end());
    const Trained whole = run(keys);
    for (const std::uint64_t stop : {2, 3, 4}) {
      SCOPED_TRACE(what + (more.empty() ? "" : more[0]) + " resumed at " + std::to_string(stop));
      const Trained stopped = run(keys, stop);
      ASSERT_EQ(stopped.result.steps, stop);
      const Trained resumed = run(keys, 0, stopped.result.run_dir);
      EXPECT_EQ(
          difference_of_checkpoints(whole.result.run_dir + "/checkpoints/" + checkpoint_name(7),
                                    resumed.result.run_dir + "/checkpoints/" + checkpoint_name(7)),
          "");
      EXPECT_EQ(testing::metrics_of(resumed.result.run_dir),
                testing::metrics_of(whole.result.run_dir));
    }
  }
};

// Every border with every type of average; the optimizers take turns.
TEST_F(ResumeBordersTest, AreCrossedAlike) {
  std::size_t next = 0;
  for (const Part& border : borders) {
    for (const Part& average : averages) {
      if (!fit(border, average)) continue;
      const Part& optimizer = optimizers[next++ % optimizers.size()];
      expect_same({&optimizer, &average, &border}, next % 2 == 0 ? Keys{"micro_batch=4"} : Keys{});
    }
  }
}

TEST_F(ResumeBordersTest, LongEveryOptimizerAtEveryBorder) {
  for (const Part& border : borders) {
    for (const Part& average : averages) {
      if (!fit(border, average)) continue;
      for (const Part& optimizer : optimizers) {
        for (const Keys& more : {Keys{}, Keys{"micro_batch=4"}})
          expect_same({&optimizer, &average, &border}, more);
      }
    }
  }
}

// A rule may change while its parameter has never trained: states that the checkpoint lacks start
// anew.
TEST_F(ResumeBordersTest, WhatHasNeverTrainedMayThawEarlier) {
  const Keys keys{"steps=7", "optimizer.kind=adam", "optimizer.ema={decay=0.5}"};
  const auto with = [&](const char* freeze) {
    Keys all = keys;
    all.push_back(std::string("parameters.freeze=[{at=\"fc1\"") + freeze + "}]");
    return all;
  };
  const Trained whole = run(with(", until=\"3 steps\""));
  for (const char* before : {"", ", until=\"6 steps\""}) {
    SCOPED_TRACE(before);
    const Trained stopped = run(with(before), 3);
    const Trained resumed = run(with(", until=\"3 steps\""), 0, stopped.result.run_dir);
    EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
    const Trained later = run(with(before), 4);
    const Trained thawed = run(with(", until=\"2 steps\""), 0, later.result.run_dir);
    EXPECT_EQ(thawed.result.steps, 7u);
  }
}

}  // namespace
}  // namespace tandem
