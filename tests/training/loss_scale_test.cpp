// Runs with a loss scale: the same training as without one if nothing overflows, steps that are
// skipped and counted if something does, checkpoints, and runs that no scale can help.
#include "engine/train/graph/loss_scale.h"

#include <cstring>
#include <filesystem>
#include <limits>

#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using testing::expect_near;
using ::testing::HasSubstr;
using ::testing::Not;
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

/// Writes a run's only checkpoint anew, with another value of one state.
void put_state(const std::string& run_dir, std::uint64_t step, const std::string& name,
               const HostTensor& value) {
  const std::string folder = run_dir + "/checkpoints", path = folder + "/" + checkpoint_name(step);
  CheckpointContent content = read_checkpoint(path);
  int found = 0;
  for (NamedTensor& state : content.optimizer) {
    if (state.name != name) continue;
    state.tensor = value;
    ++found;
  }
  EXPECT_EQ(found, 1) << name;
  fs::remove_all(path);
  write_checkpoint(folder, content);
}
HostTensor scale_of(float value) { return HostTensor::from<float>({}, {value}); }
HostTensor count_of(std::int64_t value) { return HostTensor::from<std::int64_t>({}, {value}); }

// The host computes in float32, where a power of two changes only which kernels are chosen.
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
    // Up to there every parameter and moment has its initial bits; from then on none has.
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

// Adam's bias correction makes the first step that is taken as long as the learning rate; counted
// from the run's start it would be shorter.
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
  // On resume the configuration's scale counts, not the checkpoint's.
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

TEST_F(LossScaleTest, AnotherPrecisionCarriesItOn) {
  const Trained stopped = run({half}, 4);
  const std::string run_dir = stopped.result.run_dir;
  put_state(run_dir, 4, loss_scale_state, scale_of(512));
  put_state(run_dir, 4, good_steps_state, count_of(1));
  put_state(run_dir, 4, skipped_steps_state, count_of(3));
  run({}, 5, run_dir);
  run({}, 6, run_dir);  // also from the scale that a float32 run has kept
  const Trained narrow = run({half, "steps=8", "precision.growth_interval=2"}, 0, run_dir);
  EXPECT_EQ(narrow.all("loss_scale"), (std::vector<double>{1024, 1024}));  // one good step was due
  EXPECT_THAT(narrow.all("skipped_steps"), Each(3));
}

// A run whose fixed scale is too high continues with a dynamic one.
TEST_F(LossScaleTest, AfterAFixedScaleADynamicOneStartsAnew) {
  const Trained fixed = run({half, "precision.loss_scale=1e30"}, 3);
  EXPECT_EQ(fixed.all("skipped_steps"), (std::vector<double>{1, 2, 3}));
  EXPECT_THAT(fixed.messages, Contains(AllOf(HasSubstr("nothing was trained: 3 of 3 steps"),
                                             HasSubstr("the loss scale is 1e+30"))));
  const Trained dynamic = run({half}, 0, fixed.result.run_dir);
  EXPECT_THAT(dynamic.all("loss_scale"), Each(65536));
  EXPECT_THAT(dynamic.all("skipped_steps"), Each(3));
  EXPECT_THAT(dynamic.messages, Not(Contains(HasSubstr("nothing was trained"))));
}

// 2^100 takes 90 halvings here.
TEST_F(LossScaleTest, ADynamicScaleMayFallForLong) {
  const std::vector<std::string> keys{half, overflowing, "optimizer.kind=adam", "optimizer.lr=0.01",
                                      "steps=120"};
  const Trained stopped = run(keys, 3);
  put_state(stopped.result.run_dir, 3, loss_scale_state, scale_of(0x1p100f));
  const Trained resumed = run(keys, 0, stopped.result.run_dir);
  const double skipped = resumed.all("skipped_steps").back();
  EXPECT_GT(skipped, 60);
  EXPECT_LT(skipped, 115);
}

TEST_F(LossScaleTest, StatesThatCannotBeAreNamed) {
  const Trained stopped = run({half}, 3);
  const std::string run_dir = stopped.result.run_dir;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::tuple<const char*, HostTensor, const char*>> cases{
      {loss_scale_state, scale_of(infinity), "got inf"},
      {loss_scale_state, scale_of(std::nanf("")), "got nan"},
      {loss_scale_state, scale_of(0), "got 0"},
      {loss_scale_state, scale_of(-2), "expected a finite number of 1e-06 or more, got -2"},
      {loss_scale_state, count_of(2), "expected float32[], got int64[]"},
      {skipped_steps_state, count_of(4), "expected 0 to 3, the steps done, got 4"},
      {skipped_steps_state, count_of(-1), "got -1"},
      {good_steps_state, count_of(-7), "got -7"},
  };
  for (const auto& [name, value, got] : cases) {
    const std::string checkpoint = run_dir + "/checkpoints/" + checkpoint_name(3);
    HostTensor before;
    for (const NamedTensor& state : read_checkpoint(checkpoint).optimizer) {
      if (state.name == name) before = state.tensor;
    }
    put_state(run_dir, 3, name, value);
    for (const char* compute : {"precision.compute=float16", "precision.compute=float32"}) {
      try {
        run({compute}, 0, run_dir);
        ADD_FAILURE() << "no error: " << name << " " << got;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data);
        EXPECT_THAT(error.what(), AllOf(HasSubstr(checkpoint + ": " + name), HasSubstr(got)));
      }
    }
    EXPECT_EQ(testing::metrics_of(run_dir).size(), 3u);
    put_state(run_dir, 3, name, before);
  }
  EXPECT_EQ(run({half}, 0, run_dir).result.steps, 6u);
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
  EXPECT_THAT(ending({}),
              AllOf(HasSubstr("precision.loss_scale"), HasSubstr("fell too low"),
                    HasSubstr("step 36: expected finite gradients at a scale of 1e-6 or more, got "
                              "a scale of 9.53674e-07, 36 steps skipped in all"),
                    HasSubstr("precision.keep_float32")));
  EXPECT_THAT(ending({"precision.loss_scale=1024"}),
              AllOf(HasSubstr("40 steps in a row"),
                    HasSubstr("step 40: expected finite gradients, got a scale of 1024, 40 steps "
                              "skipped in all"),
                    HasSubstr("lower precision.loss_scale")));
  EXPECT_THAT(ending({"precision.loss_scale=1e30", "steps=40"}),
              HasSubstr("got a scale of 1e+30, 40 steps skipped"));
}

TEST_F(LossScaleTest, SkippedStepsCountAcrossResumptions) {
  const std::vector<std::string> keys{half, "precision.loss_scale=1e30", "steps=60"};
  const std::string run_dir = run(keys, 15).result.run_dir;
  run(keys, 30, run_dir);
  EXPECT_THAT(testing::error_text([&] { run(keys, 50, run_dir); }),
              AllOf(HasSubstr("40 steps in a row"), HasSubstr("step 40")));
}

TEST_F(LossScaleTest, TheLogHasNotesAndTheReasonOfTheEnd) {
  const std::string run_dir = folder_ / "logged";
  const std::string error = testing::error_text([&] {
    run({half, "precision.loss_scale=1e30", "steps=60", "run_dir=\"" + run_dir + "\""});
  });
  EXPECT_THAT(error, HasSubstr("40 steps in a row"));
  const std::vector<std::string> log = testing::lines_of(run_dir + "/train.log");
  ASSERT_GT(log.size(), 1u) << "no notes of the plan";
  EXPECT_THAT(log.front(), HasSubstr("copy of"));
  EXPECT_EQ(log.back(), error);
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
