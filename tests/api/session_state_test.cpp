// What a Session accepts between its steps: a smaller last batch, saving and restoring its whole
// state, another learning rate; and reporting all mistakes of its settings at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::cross_entropy;
using tandem::testing::digits;
using tandem::testing::digits_model;
using tandem::testing::error_of;
using tandem::testing::TemporaryFolder;
using tandem::testing::training_digits;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Settings = std::vector<std::string>;

Session session_of(Settings settings, std::int64_t batch = 8) {
  settings.insert(settings.begin(), cross_entropy);
  return Session(digits_model, batch, settings);
}

// ---------------------------------------------------------------- the smaller last batch

// A Trainer's epoch of 45 batches ends with 29 of 32 samples: its losses are the expectation.
TEST(SessionBatches, TheLastOneOfAnEpochMayBeSmallerAsInATrainer) {
  const TemporaryFolder folder;
  constexpr int samples = 1437, batch = 96;  // 14 whole batches and 93 samples
  write_file(folder / "train.toml", tandem::testing::digits_in_order);
  const Settings settings{"optimizer.kind=adam", "optimizer.lr=0.01", "optimizer.clip_norm=1.0"};
  TrainOptions options;
  options.run_dir = folder / "run";
  options.overrides = settings;
  options.overrides.insert(options.overrides.end(),
                           {cross_entropy, "batch_size=" + std::to_string(batch), "steps=17"});
  std::vector<double> expected, losses;
  options.on_progress = [&](const Progress& p) {
    if (!p.evaluation) expected.push_back(p.values.at(0).second);
  };
  Trainer(folder / "train.toml", options).run();
  Session session = session_of(settings, batch);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int first = 0; first < samples && losses.size() < 17; first += batch)
      losses.push_back(
          session.step(training_digits().batch(first, std::min(batch, samples - first))));
  }
  EXPECT_EQ(losses, expected);
}

TEST(SessionBatches, AnySizeUpToTheBatch) {
  Session one = session_of({"optimizer.kind=sgd", "optimizer.lr=0.1"});
  for (const int count : {1, 8, 3, 8, 1}) {
    Session other = session_of({"optimizer.kind=sgd", "optimizer.lr=0.1"}, count);
    for (const auto& [name, value] : one.parameters()) other.set_parameter(name, value);
    EXPECT_EQ(one.step(training_digits().batch(2, count)),
              other.step(training_digits().batch(2, count)));
    for (const auto& [name, value] : one.parameters())
      EXPECT_EQ(value, other.parameters().at(name)) << name;
  }
}

TEST(SessionBatches, AllFeedsHaveTheSame) {
  Session session = session_of({"optimizer.kind=sgd"});
  auto feeds = training_digits().batch(0, 8);
  feeds["labels"] = training_digits().batch(0, 4).at("labels");
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("labels"));
  session.step(training_digits().batch(0, 4));  // a first step with fewer samples
  session.step(training_digits().batch(0, 8));
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("labels"));
}

TEST(SessionBatches, AFirstStepOfFewerBeforeAThaw) {
  const Settings thaws{"optimizer.kind=adam", "optimizer.lr=0.01",
                       "parameters.freeze=[{ at = \"conv*:*\", until = \"2 steps\" }]"};
  Session session = session_of(thaws);
  const auto start = session.parameters();
  session.step(training_digits().batch(0, 3));
  session.step(training_digits().batch(0, 8));
  const auto frozen = session.parameters();
  session.step(training_digits().batch(0, 8));
  for (const auto& [name, value] : session.parameters()) {
    if (!name.starts_with("conv")) continue;
    EXPECT_EQ(frozen.at(name), start.at(name)) << name;
    EXPECT_NE(value, start.at(name)) << name;
  }
}

// ---------------------------------------------------------------- the whole state

struct StateCase {
  std::string name;
  Settings settings;
};

void PrintTo(const StateCase& c, std::ostream* out) { *out << c.name; }

std::vector<StateCase> state_cases() {
  return {
      {"adam", {"optimizer.kind=adamw", "optimizer.lr=0.01"}},
      {"momentum_and_schedule",
       {"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.lr=0.05",
        "optimizer.schedule={ kind = \"cosine\", warmup = \"3 steps\" }", "steps=12"}},
      {"averages",
       {"optimizer.kind=sgd", "optimizer.lr=0.1", "optimizer.ema={ decay = 0.9 }",
        "optimizer.swa={ start = \"2 steps\", every = \"2 steps\" }",
        "optimizer.lookahead={ k = 3 }"}},
      {"float16_with_a_dynamic_scale",
       {"optimizer.kind=adam", "optimizer.lr=0.01", "policy=FOLDER/policy.toml",
        "precision.compute=float16", "precision.growth_interval=2"}},
      {"thaw",
       {"optimizer.kind=adam", "optimizer.lr=0.01",
        "parameters.freeze=[{ at = \"conv*:*\", until = \"6 steps\" }]"}},
      {"groups",
       {"optimizer.kind=adam", "optimizer.lr=0.01",
        "optimizer.groups=[{ at = \"fc2:*\", kind = \"lion\", lr = 0.001 }]"}},
  };
}

class SessionState : public ::testing::TestWithParam<StateCase> {
 protected:
  SessionState() {
    write_file(folder_ / "policy.toml",
               "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\n"
               "rules = [ { at = \"fc*.**\", on = \"gpu\" } ]\n");
  }
  Session session() const {
    Settings all;
    for (std::string setting : GetParam().settings) {
      const std::size_t at = setting.find("FOLDER/");
      if (at != std::string::npos) setting.replace(at, 7, folder_ / "");
      all.push_back(setting);
    }
    return session_of(all);
  }
  /// Losses of `count` steps from `first` on, one of them with a smaller batch.
  static std::vector<double> steps(Session& session, int first, int count) {
    std::vector<double> losses;
    for (int step = first; step < first + count; ++step)
      losses.push_back(session.step(training_digits().batch(8 * step, step == 5 ? 3 : 8)));
    return losses;
  }
  static void expect_equal(Session& a, Session& b) {
    for (const auto& [name, value] : a.parameters())
      EXPECT_EQ(value, b.parameters().at(name)) << name;
  }

  TemporaryFolder folder_;
};

TEST_P(SessionState, AnotherSessionGoesOnBitByBit) {
  Session whole = session();
  steps(whole, 0, 4);
  whole.save_state(folder_ / "state.safetensors");
  const std::vector<double> expected = steps(whole, 4, 5);
  Session other = session();
  other.restore_state(folder_ / "state.safetensors");
  EXPECT_EQ(steps(other, 4, 5), expected);
  expect_equal(other, whole);
  // A session that has trained further can be restored, even after a thaw.
  other.restore_state(folder_ / "state.safetensors");
  EXPECT_EQ(steps(other, 4, 5), expected);
  expect_equal(other, whole);
  // A state that is saved again is the same.
  other.restore_state(folder_ / "state.safetensors");
  other.save_state(folder_ / "again.safetensors");
  EXPECT_EQ(read_file(folder_ / "again.safetensors").size(),
            read_file(folder_ / "state.safetensors").size());
  Session third = session();
  third.restore_state(folder_ / "again.safetensors");
  EXPECT_EQ(steps(third, 4, 5), expected);
}

TEST_P(SessionState, IsThereBeforeTheFirstStep) {
  Session whole = session();
  const Tensor bias = Tensor::copy_of({10}, std::vector<float>(10, 0.5f));
  whole.set_parameter("fc2.bias", bias);
  whole.save_state(folder_ / "state.safetensors");
  Session other = session();
  other.restore_state(folder_ / "state.safetensors");
  EXPECT_EQ(other.parameters().at("fc2.bias"), bias);
  EXPECT_EQ(steps(other, 0, 3), steps(whole, 0, 3));
}

INSTANTIATE_TEST_SUITE_P(All, SessionState, ::testing::ValuesIn(state_cases()),
                         [](const auto& info) { return info.param.name; });

// Masks of dropout are those that the next steps would have had.
TEST(SessionStateTest, RandomNumbersGoOn) {
  const std::string model = source_folder() + "/models/digits/model.onnx";
  const TemporaryFolder folder;
  const Settings settings{"optimizer.kind=sgd", "optimizer.lr=0.1", "seed=5"};
  Session whole = session_of(settings);
  whole.step(training_digits().batch(0, 8));
  whole.save_state(folder / "s.safetensors");
  Session same = session_of(settings);
  same.restore_state(folder / "s.safetensors");
  EXPECT_EQ(same.step(training_digits().batch(8, 8)), whole.step(training_digits().batch(8, 8)));
  Session other = session_of({"optimizer.kind=sgd", "optimizer.lr=0.1", "seed=6"});
  EXPECT_THAT(error_of([&] { other.restore_state(folder / "s.safetensors"); }),
              AllOf(HasSubstr("saved with another seed: expected 5, got 6"), HasSubstr("seed=5")));
}

TEST(SessionStateTest, WhatIsNoStateOfThisSessionIsRefused) {
  const TemporaryFolder folder;
  Session session = session_of({"optimizer.kind=adam"});
  session.step(training_digits().batch(0, 8));
  session.save_state(folder / "adam.safetensors");
  session.save(folder / "weights.safetensors");
  write_file(folder / "text.safetensors", "text");
  EXPECT_THAT(error_of([&] { session.restore_state(folder / "weights.safetensors"); }),
              HasSubstr("not the state of a Session"));
  EXPECT_NE(
      error_of([&] { session.restore_state(folder / "none.safetensors"); }, ErrorKind::runtime),
      "no error");
  EXPECT_NE(error_of([&] { session.restore_state(folder / "text.safetensors"); }, ErrorKind::data),
            "no error");
  Session other = session_of({"optimizer.kind=sgd"});
  EXPECT_THAT(error_of([&] { other.restore_state(folder / "adam.safetensors"); }),
              HasSubstr("saved with another optimizer: expected adam, got sgd"));
  const double loss = session.step(training_digits().batch(8, 8));  // nothing has changed
  Session same = session_of({"optimizer.kind=adam"});
  same.restore_state(folder / "adam.safetensors");
  EXPECT_EQ(same.step(training_digits().batch(8, 8)), loss);
}

// ---------------------------------------------------------------- the learning rate

// SGD without momentum: w - lr g, so that a step of twice the rate is twice as long.
// An average that starts again, or is dropped, would otherwise go unnoticed.
TEST(SessionStateFile, AveragesAreThoseOfTheSavedSession) {
  const TemporaryFolder folder;
  const Settings plain{"optimizer.kind=sgd", "optimizer.lr=0.1"};
  for (const char* key : {"ema={ decay = 0.9 }", "swa={ start = \"1 steps\", every = \"1 steps\" }",
                          "lookahead={ k = 2 }"}) {
    SCOPED_TRACE(key);
    const std::string setting = std::string("optimizer.") + key;
    Settings averaged = plain;
    averaged.push_back(setting);
    const std::string name = setting.substr(0, setting.find('='));
    session_of(plain).save_state(folder / "plain.safetensors");
    session_of(averaged).save_state(folder / "averaged.safetensors");
    Session with = session_of(averaged), without = session_of(plain);
    EXPECT_THAT(error_of([&] { with.restore_state(folder / "plain.safetensors"); }),
                HasSubstr(name));
    EXPECT_THAT(error_of([&] { without.restore_state(folder / "averaged.safetensors"); }),
                HasSubstr(name));
    with.restore_state(folder / "averaged.safetensors");
  }
}

TEST(SessionLearningRate, ActsFromTheNextStepOn) {
  const auto moved_by = [](double lr, Settings settings) {
    settings.insert(settings.end(), {"optimizer.kind=sgd", "optimizer.lr=0.1"});
    Session session = session_of(settings);
    const std::vector<float> before = session.parameters().at("fc2.bias").floats(),
                             weights = session.parameters().at("fc1.bias").floats();
    if (lr >= 0) session.set_learning_rate(lr);
    session.step(training_digits().batch(0, 8));
    return std::pair(session.parameters().at("fc2.bias").floats()[0] - before[0],
                     session.parameters().at("fc1.bias").floats()[0] - weights[0]);
  };
  const auto [step, other] = moved_by(-1, {});
  EXPECT_NEAR(moved_by(0.2, {}).first, 2 * step, 1e-6);
  EXPECT_EQ(moved_by(0.1, {}).first, step);
  EXPECT_EQ(moved_by(0, {}).first, 0);
  // A group of a tenth of the rate keeps its ratio; a schedule multiplies: half of the rate in the
  // first of two warm-up steps.
  const Settings group{"optimizer.groups=[{ at = \"fc2:*\", lr = 0.01 }]"};
  EXPECT_NEAR(moved_by(0.2, group).first, 0.2 * step, 1e-6);
  EXPECT_NEAR(
      moved_by(0.2, {"optimizer.schedule={ kind = \"constant\", warmup = \"2 steps\" }"}).first,
      step, 1e-6);
}

TEST(SessionLearningRate, IsPartOfTheState) {
  const TemporaryFolder folder;
  Session whole = session_of({"optimizer.kind=sgd", "optimizer.lr=0.1"});
  whole.set_learning_rate(0.3);
  whole.save_state(folder / "s.safetensors");
  Session other = session_of({"optimizer.kind=sgd", "optimizer.lr=0.1"});
  other.restore_state(folder / "s.safetensors");
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(other.step(training_digits().batch(8 * step, 8)),
              whole.step(training_digits().batch(8 * step, 8)));
}

TEST(SessionLearningRate, IsANumber) {
  Session session = session_of({"optimizer.kind=sgd"});
  for (const double bad : {-0.1, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(error_of([&] { session.set_learning_rate(bad); }),
                HasSubstr("not a learning rate"));
}

// ---------------------------------------------------------------- settings

TEST(SessionSettings, AllMistakesComeAtOnce) {
  const std::string text = error_of([] {
    Session("/nowhere/model.onnx", 8,
            {cross_entropy, "optimizer.kind=adm", "epochs=3", "data.kind=npz", "optimizer.lrr=1",
             "parameters.freeze=[{ at = \"fc1:*\", until = \"2 epochs\" }]", "seed=-1"});
  });
  for (const char* part : {"/nowhere/model.onnx", "optimizer.kind", "epochs", "data.kind",
                           "optimizer.lrr", "counts only steps", "seed"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace tandem::api
