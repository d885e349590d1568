// Keys of train.toml in a Session: each works as in a Trainer, or is refused by name.
#include "api/train/session/session_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/config/keys/config_keys.h"
#include "engine/formats/files.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::cross_entropy;
using tandem::testing::digits;
using tandem::testing::digits_model;
using tandem::testing::error_of;
using tandem::testing::TemporaryFolder;
using tandem::testing::training_digits;
using ::testing::HasSubstr;

Session with(std::vector<std::string> settings) {
  settings.insert(settings.begin(), {cross_entropy, "optimizer.kind=sgd"});
  return Session(digits_model, 8, settings);
}

// ---------------------------------------------------------------- which keys are supported

/// A setting for a key with this pattern: "a.b[].*.c" becomes `a.b=[{x={c=1}}]`.
std::string setting_of(std::string_view pattern) {
  const std::size_t end = std::min(pattern.find("[]"), pattern.size());
  std::string path(pattern.substr(0, end)), value = "1";
  for (std::size_t at = 0; (at = path.find('*', at)) != std::string::npos;) path[at] = 'x';
  if (end == pattern.size()) return path + "=" + value;
  std::string_view rest = pattern.substr(end);
  std::string before, after;
  while (!rest.empty()) {
    if (rest.starts_with("[]")) {
      before += "[";
      after.insert(0, "]");
      rest.remove_prefix(2);
      continue;
    }
    rest.remove_prefix(1);  // a dot
    const std::size_t next = std::min(rest.find_first_of(".["), rest.size());
    const std::string name(rest.substr(0, next));
    before += "{ " + (name == "*" ? "x" : name) + " = ";
    after.insert(0, " }");
    rest.remove_prefix(next);
  }
  return path + "=" + before + value + after;
}

TEST(SessionKeysTest, EveryKeyIsHonouredOrRefusedByName) {
  int refused = 0;
  for (const KeyInfo& key : train_keys().keys) {
    if (session_honours(key.path)) continue;
    SCOPED_TRACE(key.path);
    const std::string setting = setting_of(key.path);
    const std::string text = error_of([&] { with({setting}); });
    const std::string shown(setting.substr(0, setting.find('=')));
    EXPECT_THAT(text, HasSubstr(shown));
    EXPECT_THAT(text, HasSubstr("a Session does not honour this key"));
    ++refused;
  }
  EXPECT_GT(refused, 30);
}

TEST(SessionKeysTest, OnlyKeysAreListedAndOthersAreNotHonoured) {
  const auto keys = train_keys().keys;
  for (const std::string_view listed : session_keys()) {
    EXPECT_TRUE(std::any_of(keys.begin(), keys.end(), [&](const KeyInfo& key) {
      return key.path == listed;
    })) << listed;
  }
  for (const char* later :
       {"optimizer.nosuch", "optimizer.groups[].nosuch", "parameters.nosuch", "nosuch", "data"})
    EXPECT_FALSE(session_honours(later)) << later;
  EXPECT_TRUE(session_honours("optimizer.groups[].lr"));
  for (const char* of_loss : {"loss.terms[].kind", "loss.terms[].sample_weights",
                              "loss.terms[].class_weights[]", "loss.terms[].delta"})
    EXPECT_TRUE(session_honours(of_loss)) << of_loss;
  EXPECT_FALSE(session_honours("loss.terms[].nosuch"));
}

TEST(SessionKeysTest, AllThatIsRefusedIsSaidTogether) {
  const std::string text = error_of([] {
    with({"model=other.onnx", "batch_size=4", "micro_batch=2", "epochs=3", "checkpoint.every=1 h",
          "data.workers=2", "run_dir=there"});
  });
  for (const char* part :
       {"model: a Session", "batch_size: a Session", "micro_batch: a Session", "epochs: a Session",
        "checkpoint.every: a Session", "data.workers: a Session", "run_dir: a Session",
        "a step is one micro-batch", "feed tensors"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(SessionKeysTest, ValuesThatOnlyRunsHaveAreRefused) {
  const auto refusal = [](const std::vector<std::string>& settings) {
    return error_of([&] { with(settings); });
  };
  EXPECT_THAT(refusal({"optimizer.schedule={ kind = \"constant\", warmup = \"1 epoch\" }"}),
              HasSubstr("optimizer.schedule.warmup: a Session counts only steps"));
  EXPECT_THAT(refusal({"optimizer.schedule={ kind = \"step\", step_size = \"2 epochs\" }"}),
              HasSubstr("optimizer.schedule.step_size: a Session counts only steps"));
  EXPECT_THAT(
      refusal({"optimizer.schedule=[{ kind = \"constant\", length = \"1 epoch\" }, { kind = "
               "\"constant\" }]"}),
      HasSubstr("optimizer.schedule.parts.0.length: a Session counts only steps"));
  EXPECT_THAT(refusal({"optimizer.swa={ start = \"2 steps\" }"}),
              HasSubstr("optimizer.swa.every: a Session counts only steps"));
  EXPECT_THAT(refusal({"parameters.freeze=[{ at = \"fc1\", until = \"1 epoch\" }]"}),
              HasSubstr("parameters.freeze.until: a Session counts only steps"));
  EXPECT_THAT(
      refusal({"parameters.shape=[{ at = \"fc1\", rows = \"vocabulary(ids)\" }]"}),
      HasSubstr("parameters.shape.rows: a Session has no vocabularies: expected a number of rows"));
  EXPECT_THAT(refusal({"steps=5"}), HasSubstr("steps: a Session honours this key only as"));
  EXPECT_THAT(refusal({"optimizer.schedule={ kind = \"cosine\" }"}),
              HasSubstr("cosine needs the length of the run: expected epochs or steps"));
}

TEST(SessionKeysTest, AModelIsFoundWhateverItsNameIs) {
  const TemporaryFolder folder;
  for (const std::string name : {"${HOME}.onnx", "a \"b\".onnx", "\xe4.onnx"}) {
    write_file(folder / name, read_file(digits_model));
    EXPECT_EQ(Session(folder / name, 4, {"optimizer.kind=sgd"}).parameters().size(), 8u) << name;
  }
}

// ---------------------------------------------------------------- what supported keys do

struct HonouredCase {
  const char* name;
  std::vector<std::string> settings;
};

std::vector<HonouredCase> honoured_cases() {
  return {
      {"nothing", {}},
      {"warmup", {"optimizer.schedule={ kind = \"constant\", warmup = \"4 steps\" }"}},
      {"stairs",
       {"optimizer.schedule={ kind = \"step\", step_size = \"2 steps\", gamma = 0.1, warmup = \"1 "
        "steps\" }"}},
      {"cosine", {"optimizer.schedule={ kind = \"cosine\", final = 1e-3 }", "steps=6"}},
      {"linear", {"optimizer.schedule={ kind = \"linear\", warmup = \"2 steps\" }", "steps=6"}},
      {"frozen", {"parameters.freeze=[{ at = \"fc1:*\" }]"}},
      {"frozen_for_a_while",
       {"parameters.freeze=[{ at = \"fc1:*\", until = \"2 steps\" }, { at = \"conv1:*\", until = "
        "\"4 steps\" }]",
        "optimizer.kind=adam"}},
      {"init",
       {"parameters.init=[{ at = \"fc1:weight\", kind = \"normal\", std = 0.2 }]", "seed=7"}},
      {"load", {"parameters.load=[{ from = \"FOLDER/other.npz\", at = \"fc*:*\" }]"}},
      {"clip_norm", {"optimizer.clip_norm=0.05"}},
      {"clip_elements", {"optimizer.clip_value=0.01", "optimizer.clip_adaptive=0.05"}},
      {"parts",
       {"optimizer.schedule=[{ kind = \"exponential\", period = \"2 steps\", length = \"3 steps\" "
        "}, { kind = \"one_cycle\" }]",
        "steps=6"}},
      {"schedule_of_a_group",
       {"optimizer.groups=[{ at = \"fc2:*\", schedule = { kind = \"multistep\", milestones = "
        "[\"2 steps\"] } }]"}},
      {"averages",
       {"optimizer.ema={ decay = 0.9 }",
        "optimizer.swa={ start = \"2 steps\", every = \"1 steps\" }",
        "optimizer.lookahead={ k = 2 }"}},
      {"groups", {"optimizer.groups=[{ at = \"fc2:*\", kind = \"adamw\", lr = 0.01 }]"}},
      {"loss",
       {"loss.terms=[{ kind = \"softmax_cross_entropy\", logits = \"logits\", labels = \"labels\", "
        "label_smoothing = 0.1, weight = 3.0 }]"}},
      {"float16",
       {"policy=FOLDER/policy.toml", "precision.compute=float16", "precision.loss_scale=1024.0",
        "precision.keep_float32=[\"fc2.**\"]"}},
      {"other_device", {"policy=FOLDER/policy.toml", "threads=1"}},
  };
}

class HonouredKeys : public ::testing::TestWithParam<HonouredCase> {
 protected:
  static constexpr int steps = 6, batch = 32;

  HonouredKeys() {
    write_file(folder_ / "policy.toml",
               "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\n"
               "rules = [ { at = \"fc*.**\", on = \"gpu\" } ]\n");
    write_file(folder_ / "train.toml", testing::digits_in_order);
    Session other(digits_model, batch, {cross_entropy, "optimizer.kind=sgd", "optimizer.lr=0.5"});
    other.step(training_digits().batch(0, batch));
    other.save(folder_ / "other.npz");
  }

  std::vector<std::string> settings() const {
    std::vector<std::string> all{cross_entropy, "optimizer.kind=sgd", "optimizer.lr=0.1"};
    for (std::string setting : GetParam().settings) {
      const std::size_t at = setting.find("FOLDER/");
      if (at != std::string::npos) setting.replace(at, 7, folder_ / "");
      all.push_back(setting);
    }
    return all;
  }

  TemporaryFolder folder_;
};

TEST_P(HonouredKeys, DoAsInATrainer) {
  TrainOptions options;
  options.run_dir = folder_ / "run";
  options.overrides = settings();
  options.overrides.push_back("batch_size=" + std::to_string(batch));
  options.overrides.push_back("steps=" + std::to_string(steps));
  std::vector<double> expected, losses;
  options.on_progress = [&](const Progress& p) {
    if (!p.evaluation) expected.push_back(p.values.at(0).second);
  };
  Trainer(folder_ / "train.toml", options).run();
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(steps));
  Session session(digits_model, batch, settings());
  for (int step = 0; step < steps; ++step)
    losses.push_back(session.step(training_digits().batch(batch * step, batch)));
  EXPECT_EQ(losses, expected);
}

INSTANTIATE_TEST_SUITE_P(All, HonouredKeys, ::testing::ValuesIn(honoured_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SessionKeysTest, InitAndLoadAreSeenBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const std::string init =
      "parameters.init=[{ at = \"fc1:*\", kind = \"constant\", value = 0.25 }]";
  Session session = with({init});
  for (const float value : session.parameters().at("fc1.weight").floats()) ASSERT_EQ(value, 0.25f);
  session.set_parameter("fc1.bias", Tensor::copy_of({64}, std::vector<float>(64, 3)));
  session.save(folder / "start.npz");
  const std::string load = "parameters.load=[{ from = \"" + (folder / "start.npz") + "\" }]";
  const auto loaded = with({load}).parameters();
  EXPECT_EQ(loaded.at("fc1.bias").floats()[5], 3);
  EXPECT_EQ(loaded.at("fc1.weight").floats()[5], 0.25f);
  EXPECT_THAT(error_of([] { with({"parameters.init=[{ at = \"fc9:*\", kind = \"zeros\" }]"}); }),
              HasSubstr("\"fc9:*\" matches no parameter"));
}

TEST(SessionKeysTest, ThreadsOfThePolicyCount) {
  const TemporaryFolder folder;
  write_file(folder / "policy.toml",
             "policy = 1\ndevices = { cpu = { threads = 1 } }\nrules = []\n");
  const auto losses = [&](const std::vector<std::string>& settings) {
    Session session = with(settings);
    std::vector<double> all;
    for (int i = 0; i < 3; ++i) all.push_back(session.step(training_digits().batch(8 * i, 8)));
    return all;
  };
  EXPECT_EQ(losses({"policy=" + (folder / "policy.toml")}), losses({"threads=1"}));
}

}  // namespace
}  // namespace tandem::api
