// Samples of a program under a Trainer: a run of its own, the same as one from files, that resumes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tandem/data_source.h"
#include "tandem/tandem.h"
#include "tandem/train_config.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::Digits;
using testing::digits;
using testing::digits_model;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryFolder;

/// The committed digits, as a program may have them.
class DigitSamples : public DataSource {
 public:
  explicit DigitSamples(const std::string& file) : digits_(file) {}

  std::vector<DataField> fields() const override {
    return {{"image", DType::float32, {1, 8, 8}}, {"labels", DType::int32, {}}};
  }
  std::int64_t samples() const override { return digits_.labels.shape()[0]; }
  void fill(std::size_t field, std::span<const std::int64_t> indices, void* to) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (field == 0)
        std::memcpy(static_cast<float*>(to) + 64 * i,
                    digits_.images.as<float>().data() + 64 * indices[i], 64 * sizeof(float));
      else
        static_cast<std::int32_t*>(to)[i] = label(indices[i]);
    }
  }
  std::string identity() const override { return identity_text; }

  virtual std::int32_t label(std::int64_t index) const {
    return static_cast<std::int32_t>(digits_.labels.as<std::int64_t>()[index]);
  }
  std::string identity_text = "digits 1";

 private:
  Digits digits_;
};

TrainConfig program_config() {
  TrainConfig config = TrainConfig::load(digits + "train.toml");
  config.epochs.reset();
  config.steps = 60;
  config.eval.every = Duration::steps(30);
  config.checkpoint.every = Duration::steps(20);
  config.log.every = Duration::steps(20);
  config.data = {.kind = DataKind::program};
  return config;
}

class ProgramSamplesTest : public ::testing::Test {
 protected:
  TrainOptions options(const std::string& name) {
    TrainOptions options;
    options.run_dir = folder_ / name;
    options.train = train_;
    options.eval = eval_;
    return options;
  }

  TemporaryFolder folder_;
  std::shared_ptr<DigitSamples> train_ = std::make_shared<DigitSamples>("digits_train.npz");
  std::shared_ptr<DigitSamples> eval_ = std::make_shared<DigitSamples>("digits_test.npz");
};

TEST_F(ProgramSamplesTest, TrainAsTheSameSamplesOfFilesDo) {
  TrainConfig of_files = program_config();
  of_files.data = TrainConfig::load(digits + "train.toml").data;
  TrainOptions file_options = options("files");
  file_options.train = file_options.eval = nullptr;
  const TrainResult expected = Trainer(of_files, file_options).run();
  const TrainResult result = Trainer(program_config(), options("program")).run();
  EXPECT_EQ(result.loss, expected.loss);
  EXPECT_EQ(result.evaluation, expected.evaluation);
  EXPECT_GT(result.evaluation.at("accuracy"), 0.7);
}

TEST_F(ProgramSamplesTest, CallbacksSeeStepsEvaluationsAndCheckpoints) {
  TrainOptions with = options("run");
  std::vector<std::uint64_t> steps, evaluations, saved;
  with.on_step = [&](const Progress& at) { steps.push_back(at.step); };
  with.on_evaluation = [&](const Progress& at) { evaluations.push_back(at.step); };
  with.on_checkpoint = [&](const std::string& path, std::uint64_t step) {
    EXPECT_TRUE(std::filesystem::is_directory(path)) << path;
    saved.push_back(step);
  };
  Trainer(program_config(), with).run();
  EXPECT_THAT(steps, ::testing::ElementsAre(1, 20, 40, 60));
  EXPECT_THAT(evaluations, ::testing::ElementsAre(30, 60));
  for (const std::uint64_t step : {20, 40, 60}) EXPECT_THAT(saved, Contains(step));
}

TEST_F(ProgramSamplesTest, AStoppedRunResumesExactlyWithTheSameIdentity) {
  const TrainResult expected = Trainer(program_config(), options("whole")).run();
  TrainOptions stopping = options("run");
  stopping.on_step = [stop = stopping.stop](const Progress&) { stop.request_stop(); };
  EXPECT_TRUE(Trainer(program_config(), stopping).run().interrupted);

  TrainOptions resuming = options("run");
  resuming.resume = true;
  train_->identity_text = "digits 2";
  EXPECT_THAT(error_of([&] { Trainer(program_config(), resuming).run(); }),
              AllOf(HasSubstr("data.train"), HasSubstr("digits 1"), HasSubstr("digits 2")));
  train_->identity_text = "digits 1";
  const TrainResult result = Trainer(program_config(), resuming).run();
  EXPECT_EQ(result.steps, expected.steps);
  EXPECT_EQ(result.loss, expected.loss);
  EXPECT_EQ(result.evaluation, expected.evaluation);
}

TEST_F(ProgramSamplesTest, APartMayBeHeldOut) {
  eval_ = nullptr;
  TrainConfig config = program_config();
  EXPECT_THAT(error_of([&] { Trainer(config, options("run")); }),
              HasSubstr("eval: there is no data to evaluate on"));
  config.data.eval.fraction = 0.2;
  EXPECT_GT(Trainer(config, options("run")).run().evaluation.at("accuracy"), 0.5);
}

TEST_F(ProgramSamplesTest, BadLabelsAreNamedBeforeTheFirstStep) {
  struct Bad : DigitSamples {
    Bad() : DigitSamples("digits_train.npz") {}
    std::int32_t label(std::int64_t index) const override { return index == 17 ? 10 : 3; }
    std::string describe(std::int64_t sample) const override {
      return "picture " + std::to_string(sample);
    }
  };
  train_ = std::make_shared<Bad>();
  EXPECT_THAT(error_of([&] { Trainer(program_config(), options("run")).run(); }, ErrorKind::data),
              AllOf(HasSubstr("data.fields.labels"), HasSubstr("picture 17: out of range"),
                    HasSubstr("expected 0 to 9, got 10")));
}

TEST_F(ProgramSamplesTest, WhatTheSourceThrowsEndsTheRun) {
  struct Failing : DigitSamples {
    Failing() : DigitSamples("digits_train.npz") {}
    std::int32_t label(std::int64_t) const override { throw std::runtime_error("no such row"); }
  };
  train_ = std::make_shared<Failing>();
  EXPECT_THAT(error_of([&] { Trainer(program_config(), options("run")).run(); }, ErrorKind::data),
              AllOf(HasSubstr("the data source failed"), HasSubstr("no such row"),
                    Not(HasSubstr("not a class"))));
}

TEST_F(ProgramSamplesTest, FilesAndSamplesAreNotGivenTogether) {
  TrainConfig config = program_config();
  TrainOptions without = options("run");
  without.train = without.eval = nullptr;
  EXPECT_THAT(error_of([&] { Trainer(config, without); }), HasSubstr("give TrainOptions::train"));
  config.data = TrainConfig::load(digits + "train.toml").data;
  EXPECT_THAT(error_of([&] { Trainer(config, options("run")); }),
              HasSubstr("come from TrainOptions::train"));
  config = program_config();
  config.data.fields["image"] = {.from = {"image"}};
  EXPECT_THAT(error_of([&] { Trainer(config, options("run")); }),
              HasSubstr("data.fields: the program that trains names the fields"));
}

// `tandem eval` takes arrays that have the names of the fields.
TEST_F(ProgramSamplesTest, ARunOfThemIsExportedAndUsedWithFiles) {
  const TrainResult result = Trainer(program_config(), options("run")).run();
  EXPECT_NO_THROW(export_run(result.run_dir, folder_ / "model.onnx"));
  TrainedOptions evaluating;
  EXPECT_THAT(error_of([&] { evaluate_run(result.run_dir, evaluating); }),
              HasSubstr("files have to be named"));
  const Digits held_out("digits_test.npz");
  write_npz(folder_ / "held_out.npz", {{"image", held_out.images}, {"labels", held_out.labels}});
  evaluating.data = {folder_ / "held_out.npz"};
  evaluating.checkpoint = "latest";
  const EvaluationReport report = evaluate_run(result.run_dir, evaluating);
  const double accuracy =
      nlohmann::json::parse(report.json).at("metrics").at("accuracy").get<double>();
  EXPECT_DOUBLE_EQ(accuracy, result.evaluation.at("accuracy"));
}

}  // namespace
}  // namespace tandem::api
