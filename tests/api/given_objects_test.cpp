// Policies and models as objects: a Trainer and a Session take them as they take files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "tandem/session_config.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using testing::digits;
using testing::digits_model;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;
using testing::training_digits;

Policy dense_layers_on_cpu() {
  return Policy::of({{.at = "**", .on = "gpu"}, {.at = "fc*.**", .on = "cpu"}});
}

TrainConfig short_run() {
  TrainConfig config = TrainConfig::load(digits + "train.toml");
  config.epochs.reset();
  config.steps = 8;
  config.checkpoint.every = Duration::steps(4);
  config.log.every = Duration::steps(4);
  config.eval = {};
  return config;
}

SessionConfig session_of(SessionConfig config = {}) {
  config.batch_size = 32;
  config.loss = {
      .terms = {{.kind = SoftmaxCrossEntropyLoss{.logits = "logits", .labels = "labels"}}}};
  config.optimizer = {.kind = Adam{.lr = 3e-3}};
  return config;
}

class GivenObjectsTest : public ::testing::Test {
 protected:
  TrainOptions options(const std::string& name) {
    TrainOptions with;
    with.run_dir = folder_ / name;
    with.devices = {"gpu=emulated:0,memory=64MiB"};
    return with;
  }
  TemporaryFolder folder_;
};

TEST_F(GivenObjectsTest, ARunUnderAPolicyOfRulesIsThatUnderTheirFile) {
  dense_layers_on_cpu().save(folder_ / "policy.toml");
  TrainConfig of_file = short_run();
  of_file.policy = folder_ / "policy.toml";
  Trainer by_file(of_file, options("file"));
  TrainOptions with = options("code");
  with.policy = dense_layers_on_cpu();
  Trainer by_code(short_run(), with);
  EXPECT_EQ(by_code.summary(), by_file.summary());
  EXPECT_EQ(by_code.run().loss, by_file.run().loss);
  EXPECT_THAT(read_file(folder_ / "code/placement.json"), HasSubstr("gpu"));
  for (const std::string file : {"policy.toml", "placement.json"})
    EXPECT_EQ(read_file(folder_ / ("code/" + file)), read_file(folder_ / ("file/" + file)));
  EXPECT_THAT(read_file(folder_ / "code/train.resolved.toml"), HasSubstr("\"policy.toml\""));
  // The run has its policy, so what uses it needs no other.
  EXPECT_THAT(evaluate_run(folder_ / "code", {}).text, HasSubstr("\nloss "));
}

TEST_F(GivenObjectsTest, ARunResumesUnderTheSamePolicyAlone) {
  TrainOptions with = options("run");
  with.policy = dense_layers_on_cpu();
  TrainConfig config = short_run();
  config.steps = 4;
  Trainer(config, with).run();
  config.steps = 8;
  with.resume = with.accept_changes = true;
  const double resumed = Trainer(config, with).run().loss;
  TrainOptions whole = options("whole");
  whole.policy = dense_layers_on_cpu();
  EXPECT_EQ(resumed, Trainer(short_run(), whole).run().loss);

  with.accept_changes = false;
  for (const std::optional<Policy>& other :
       {std::optional<Policy>(), std::optional(Policy::of({{.at = "**", .on = "gpu"}}))}) {
    with.policy = other;
    EXPECT_THAT(error_of([&] { Trainer trainer(config, with); }),
                HasSubstr("rules.1.at: the run was started under another policy"));
  }
}

TEST_F(GivenObjectsTest, ATrainerTrainsTheGivenModel) {
  const double expected = Trainer(short_run(), options("file")).run().loss;
  TrainConfig config = short_run();
  config.model = {};
  const Model model(digits_model);
  EXPECT_EQ(Trainer(model, config, options("object")).run().loss, expected);
}

TEST_F(GivenObjectsTest, ASessionTakesPoliciesAndModels) {
  const Model model(digits_model);
  Session by_file(session_of({.model = {.file = digits_model}}));
  Session placed(
      model, session_of({.policy = Policy::parse("policy = 1\n"
                                                 "devices = { gpu = { use = \"emulated:0\" } }\n"
                                                 "rules = [ { at = \"**\", on = \"gpu\" } ]\n")}));
  const Tensors fed = training_digits().batch(0, 32);
  EXPECT_EQ(placed.step(fed), by_file.step(fed));
  // A rule that matches nothing shows that the policy is used.
  EXPECT_THAT(error_of([&] {
                Session(model, session_of({.policy = Policy::parse(
                                               "policy = 1\nrules = [ { at = \"none.**\" , on = "
                                               "\"cpu\" } ]\n",
                                               "mine.toml")}));
              }),
              HasSubstr("mine.toml:2"));
}

TEST_F(GivenObjectsTest, WhatDoesNotGoTogetherIsRefusedByName) {
  const std::vector<std::string> passes = pass_names();
  const Model model(digits_model,
                    {.bind = {{"batch", 32}}, .batch_norm = "file", .without = {passes[0]}});
  TrainConfig config = short_run();
  config.model = {
      .file = "other.onnx", .bind = {{"batch", 16}}, .batch_norm = ModelBatchNorm::train};
  EXPECT_THAT(error_of([&] { Trainer(model, config, options("run")); }),
              AllOf(HasSubstr("model.file"), HasSubstr("got other.onnx"),
                    HasSubstr("model.bind.batch: "), HasSubstr("expected 32, got 16"),
                    HasSubstr("model.batch_norm"), HasSubstr("ModelOptions::without")));
  TrainOptions unused = options("run");
  unused.trace_first = 3;
  EXPECT_THAT(error_of([&] { Trainer(short_run(), unused); }),
              HasSubstr("TrainOptions::trace_first, trace_last has no effect here"));
}

}  // namespace
}  // namespace tandem::api
