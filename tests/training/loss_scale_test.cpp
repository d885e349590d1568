// Runs with a loss scale: the same training as without where nothing overflows, steps that are left
// out and counted where something does, checkpoints, and runs that no scale can help.
#include "engine/training/loss_scale.h"

#include <cstring>

#include "engine/graph/error.h"
#include "engine/training/checkpoint.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::expect_near;
using ::testing::HasSubstr;
using testing::terms;
using testing::Trained;

using LossScaleTest = testing::TrainingRun;

const std::string half = "precision.compute=float16";
// The host computes in float32, where squares of gradients beyond 1.8e19 are infinite: with this
// weight they are at 65536, and not at some lower scale.
const std::string overflowing = terms(", weight=1e16");

void expect_same_training(const Trained& a, const Trained& b, double tolerance) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_NEAR(a.all("loss")[i], b.all("loss")[i], tolerance * b.all("loss")[i]) << i + 1;
  }
  for (const auto& [name, value] : testing::states_of(b.training->states())) {
    if (!a.training->states().has(name)) ADD_FAILURE() << name;
  }
  expect_near(b.training->states(), a.training->states(), tolerance);
}

// The host computes in float32, where a power of two changes nothing but the kernels that are
// chosen.
TEST_F(LossScaleTest, TrainsAsWithout) {
  const std::vector<std::vector<std::string>> cases{
      {"optimizer.momentum=0.9"},
      {"optimizer.kind=adam", "optimizer.lr=0.01", "optimizer.eps=1e-3"},
      {"optimizer.clip_norm=0.2"},
      {"micro_batch=4", "optimizer.kind=adam", "optimizer.eps=1e-3"},
      {"micro_batch=2", "optimizer.clip_norm=0.2"},
  };
  for (const std::vector<std::string>& keys : cases) {
    std::vector<std::string> scaled = keys;
    scaled.push_back(half);
    scaled.push_back("precision.growth_interval=2");
    const Trained with = run(scaled), without = run(keys);
    SCOPED_TRACE(keys[0]);
    expect_same_training(with, without, 1e-5);
    EXPECT_EQ(with.all("loss_scale"),
              (std::vector<double>{0x1p16, 0x1p17, 0x1p17, 0x1p18, 0x1p18, 0x1p19}));
    EXPECT_EQ(with.all("skipped_steps"), std::vector<double>(6, 0));
    if (keys.back() == "optimizer.clip_norm=0.2") {
      for (std::size_t i = 0; i < 6; ++i) {
        const double norm = without.all("gradient_norm")[i];
        EXPECT_NEAR(with.all("gradient_norm")[i], norm, 1e-5 * norm);
      }
    }
  }
}

TEST_F(LossScaleTest, SkipsUntilGradientsFit) {
  for (const char* micro_batch : {"micro_batch=8", "micro_batch=4"}) {
    const std::vector<std::string> keys{half,
                                        overflowing,
                                        "optimizer.kind=adam",
                                        "optimizer.lr=0.01",
                                        "checkpoint.every=\"1 steps\"",
                                        "checkpoint.keep=20",
                                        "steps=8",
                                        micro_batch};
    const Trained run = this->run(keys);
    const std::vector<double> scales = run.all("loss_scale"), skipped = run.all("skipped_steps");
    std::size_t first_taken = 0;
    while (first_taken < 8 && skipped[first_taken] == static_cast<double>(first_taken + 1))
      ++first_taken;
    ASSERT_GT(first_taken, 0u) << "nothing overflowed";
    ASSERT_LT(first_taken, 8u) << "nothing was trained";
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(skipped[i], static_cast<double>(std::min(i + 1, first_taken)));
      EXPECT_EQ(scales[i], std::ldexp(65536, -static_cast<int>(skipped[i])));
    }
    // Up to there every parameter and moment has the bits that it began with; then none has.
    RunConfig config = testing::small_config(folder_.path(), keys);
    Training untrained(config, engine_.parts(), {train_, nullptr}, {});
    for (std::size_t step = 1; step <= 8; ++step) {
      const CheckpointContent content =
          read_checkpoint(run.result.run_dir + "/checkpoints/" + checkpoint_name(step));
      std::vector<NamedTensor> all = content.model;
      all.insert(all.end(), content.optimizer.begin(), content.optimizer.end());
      EXPECT_EQ(all.size(), 4u * 3 + 3);
      for (const NamedTensor& state : all) {
        if (is_loss_scale_state(state.name)) continue;
        const HostTensor start = untrained.states().read(state.name);
        const bool same = std::memcmp(start.data(), state.tensor.data(), state.tensor.bytes()) == 0;
        EXPECT_EQ(same, step <= first_taken) << state.name << " at step " << step;
      }
    }
    EXPECT_EQ(run.training->states().read(skipped_steps_state).as<std::int64_t>()[0],
              static_cast<std::int64_t>(first_taken));
  }
}

// Adam's bias correction makes the first step taken as long as the rate; counted from the run's
// start it would be shorter.
TEST_F(LossScaleTest, TheFirstStepThatIsTakenIsTheFirst) {
  const Trained run = this->run({half, overflowing, "optimizer.kind=adam", "optimizer.lr=0.01",
                                 "checkpoint.every=\"1 steps\"", "checkpoint.keep=20", "steps=8"});
  const auto skipped = static_cast<std::uint64_t>(run.all("skipped_steps").back());
  ASSERT_GT(skipped, 0u);
  ASSERT_LT(skipped, 8u);
  const std::string checkpoints = run.result.run_dir + "/checkpoints/";
  const CheckpointContent before = read_checkpoint(checkpoints + checkpoint_name(skipped)),
                          after = read_checkpoint(checkpoints + checkpoint_name(skipped + 1));
  double largest = 0;
  for (std::size_t s = 0; s < before.model.size(); ++s) {
    for (std::int64_t i = 0; i < before.model[s].tensor.type().elements(); ++i) {
      largest = std::max(
          largest, std::abs(after.model[s].tensor.number(i) - before.model[s].tensor.number(i)));
    }
  }
  EXPECT_NEAR(largest, 0.01, 1e-5);
}

TEST_F(LossScaleTest, AFixedScaleStays) {
  const Trained fixed = run({half, "precision.loss_scale=1024", "optimizer.momentum=0.9"});
  EXPECT_EQ(fixed.all("loss_scale"), std::vector<double>(6, 1024));
  expect_same_training(fixed, run({"optimizer.momentum=0.9"}), 1e-5);
  // The configuration's counts on resume, not the checkpoint's.
  const Trained stopped = run({half, "precision.loss_scale=1024"}, 3);
  const Trained resumed = run({half, "precision.loss_scale=256"}, 0, stopped.result.run_dir);
  EXPECT_EQ(resumed.all("loss_scale"), std::vector<double>(3, 256));
}

TEST_F(LossScaleTest, ResumingIsBitEqual) {
  const std::vector<std::string> keys{half,
                                      overflowing,
                                      "precision.growth_interval=2",
                                      "optimizer.kind=adam",
                                      "optimizer.clip_norm=0.5",
                                      "micro_batch=4",
                                      "steps=12"};
  const Trained whole = run(keys);
  EXPECT_GT(whole.all("skipped_steps").back(), whole.all("skipped_steps")[5])
      << "the scale does not grow until it overflows again";
  for (const std::uint64_t stop : {1, 3, 4, 5, 6, 9}) {
    const Trained stopped = run(keys, stop);
    const Trained resumed = run(keys, 0, stopped.result.run_dir);
    EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "")
        << stop;
    EXPECT_EQ(testing::metrics_of(resumed.result.run_dir),
              testing::metrics_of(whole.result.run_dir));
  }
}

TEST_F(LossScaleTest, ARunMayGoOnInAnotherPrecision) {
  const Trained stopped = run({half, "optimizer.momentum=0.9"}, 3);
  const Trained wide = run({"optimizer.momentum=0.9"}, 0, stopped.result.run_dir);
  EXPECT_EQ(wide.result.steps, 6u);
  const Trained first = run({"optimizer.momentum=0.9"}, 3);
  const Trained narrow = run({half, "optimizer.momentum=0.9"}, 0, first.result.run_dir);
  EXPECT_EQ(narrow.all("loss_scale"), std::vector<double>(3, 65536));
}

TEST_F(LossScaleTest, TheSummarySaysWhatWasSkipped) {
  const Trained run = this->run({half, overflowing, "steps=8", "optimizer.kind=adam"});
  std::string text;
  for (const std::string& line : testing::lines_of(run.result.run_dir + "/summary.json"))
    text += line;
  const nlohmann::json summary = nlohmann::json::parse(text);
  EXPECT_EQ(summary["skipped_steps"], run.all("skipped_steps").back());
  EXPECT_EQ(summary["loss_scale"], run.all("loss_scale").back());
  EXPECT_GT(summary["skipped_steps"], 0);
}

TEST_F(LossScaleTest, WhatNoScaleHelpsEnds) {
  const auto ending = [&](const std::vector<std::string>& more) {
    std::vector<std::string> keys{half, terms(", weight=1e30"), "steps=60"};
    keys.insert(keys.end(), more.begin(), more.end());
    try {
      run(keys);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::diverged);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(ending({}), AllOf(HasSubstr("precision.loss_scale"), HasSubstr("fell too low"),
                                HasSubstr("step 36"), HasSubstr("36 steps skipped in all"),
                                HasSubstr("precision.keep_float32")));
  EXPECT_THAT(ending({"precision.loss_scale=1024"}),
              AllOf(HasSubstr("40 steps in a row"), HasSubstr("lower precision.loss_scale")));
}

// ---------------------------------------------------------------- configuration

TEST_F(LossScaleTest, KeysAreChecked) {
  const auto error = [&](const std::vector<std::string>& keys) {
    return testing::error_text([&] { testing::small_config(folder_.path(), keys); });
  };
  const auto config = [&](const std::vector<std::string>& keys) {
    return testing::small_config(folder_.path(), keys).precision;
  };
  EXPECT_EQ(config({half}).loss_scale, std::nullopt);
  EXPECT_EQ(config({half}).growth_interval, 2000);
  EXPECT_EQ(config({half, "precision.loss_scale=dynamic"}).loss_scale, std::nullopt);
  EXPECT_EQ(config({half, "precision.loss_scale=128"}).loss_scale, 128);
  EXPECT_EQ(config({half, "precision.loss_scale=0.5"}).loss_scale, 0.5);
  EXPECT_EQ(config({half, "precision.growth_interval=5"}).growth_interval, 5);
  EXPECT_THAT(error({"precision.loss_scale=128"}),
              HasSubstr("precision.loss_scale: not an option of compute = \"float32\""));
  EXPECT_THAT(error({"precision.compute=bfloat16", "precision.growth_interval=5"}),
              HasSubstr("precision.growth_interval: not an option of compute = \"bfloat16\""));
  EXPECT_THAT(error({half, "precision.loss_scale=128", "precision.growth_interval=5"}),
              HasSubstr("precision.growth_interval: not an option of a fixed loss_scale"));
  EXPECT_THAT(error({half, "precision.loss_scale=static"}),
              AllOf(HasSubstr("precision.loss_scale: unknown value"), HasSubstr("dynamic")));
  EXPECT_THAT(error({half, "precision.loss_scale=0"}), HasSubstr("out of range"));
  EXPECT_THAT(error({half, "precision.growth_interval=0"}), HasSubstr("out of range"));
  const auto written = [&](const std::vector<std::string>& keys) {
    return to_toml(testing::small_config(folder_.path(), keys));
  };
  EXPECT_THAT(written({half, "precision.loss_scale=128"}), HasSubstr("loss_scale = 128"));
  EXPECT_THAT(written({half, "precision.growth_interval=5"}), HasSubstr("growth_interval = 5"));
}

}  // namespace
}  // namespace tandem
