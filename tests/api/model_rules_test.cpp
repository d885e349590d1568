// What a configuration sets for operators of a model: BatchNormalization as in the file compared
// with PyTorch's losses, random numbers outside of training, rules that match nothing, and messages
// of `train`, `init` and `inspect` (tests/scripts/model_notices.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using tandem::testing::TemporaryFolder;

const std::string notices = source_folder() + "/tests/data/notices/";

Json expected_of(const std::string& name) {
  std::ifstream stream(notices + "expected.json");
  return Json::parse(stream)[name];
}

/// Writes a run over 16 samples of two channels, in two steps.
void write_batch_norm_run(const TemporaryFolder& folder) {
  const Json of = expected_of("batch_norm.onnx");
  write_npz(folder / "train.npz",
            {{"x", HostTensor::from<float>({16, 2, 3, 3}, of["x"].get<std::vector<float>>())},
             {"labels", HostTensor::from<std::int64_t>(
                            {16}, of["labels"].get<std::vector<std::int64_t>>())}});
  std::ofstream(folder / "train.toml") << "model = \"" << notices << R"(batch_norm.onnx"
batch_size = 8
epochs = 1
[parameters]
freeze = [ { at = "backbone.**" } ]
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "y", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
shuffle = "none"
[log]
every = "1 steps"
)";
}

std::vector<double> logged_losses(const TemporaryFolder& folder, const std::string& override_key) {
  TrainOptions options;
  options.run_dir = folder / ("run" + std::to_string(override_key.size()));
  if (!override_key.empty()) options.overrides = {override_key};
  Trainer(folder / "train.toml", options).run();
  std::vector<double> losses;
  std::ifstream stream(options.run_dir + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line);
    if (json.contains("loss") && !json.contains("phase")) losses.push_back(json["loss"]);
  }
  return losses;
}

TEST(ModelRules, BatchNormalizationAsTheFileSays) {
  const TemporaryFolder folder;
  write_batch_norm_run(folder);
  const Json expected = expected_of("batch_norm.onnx")["losses"];
  const auto expect = [&](const std::string& key, const char* mode) {
    SCOPED_TRACE(key);
    const std::vector<double> losses = logged_losses(folder, key);
    ASSERT_EQ(losses.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(losses[i], expected[mode][i], 2e-5);
  };
  expect("", "train");
  expect("model.batch_norm=file", "file");
  expect("model.batch_norm=inference", "inference");
  expect("model.batch_norm=[{at=\"backbone.**\", mode=\"inference\"}]", "file");
}

TEST(ModelRules, WarnOfFrozenLayersWhoseStatisticsMove) {
  const TemporaryFolder folder;
  write_batch_norm_run(folder);
  const auto summary = [&](std::vector<std::string> overrides) {
    TrainOptions options;
    options.dry_run = true;
    options.overrides = std::move(overrides);
    return Trainer(folder / "train.toml", options).summary();
  };
  EXPECT_THAT(summary({}),
              AllOf(HasSubstr("warning    the parameters of backbone.1.BatchNormalization are "
                              "frozen, but the running statistics still change"),
                    HasSubstr("{ at = \"backbone.**\", mode = \"inference\" }"),
                    HasSubstr("model.batch_norm = \"file\" does for each what the file says")));
  EXPECT_THAT(summary({"model.batch_norm=file"}),
              Not(HasSubstr("running statistics still change")));
  EXPECT_THAT(summary({"parameters.freeze=[{at=\"fc\"}]"}),
              Not(HasSubstr("running statistics still change")));
}

TEST(ModelRules, ThatMatchNothingAreRefusedTogether) {
  const TemporaryFolder folder;
  write_batch_norm_run(folder);
  TrainOptions options;
  options.dry_run = true;
  options.overrides = {"model.batch_norm=[{at=\"bakbone.**\", mode=\"file\"}]",
                       "model.random=[{at=\"noise\", mode=\"always\"}]",
                       "parameters.train=[\"fc:bias\"]"};
  const std::string text =
      tandem::testing::error_of([&] { Trainer(folder / "train.toml", options); });
  EXPECT_THAT(text, AllOf(HasSubstr("\"bakbone.**\" matches no BatchNormalization"),
                          HasSubstr("\"noise\" matches no operator that draws random numbers"),
                          HasSubstr("everything trains already")));
}

TEST(ModelRules, InitTakesTheModesOfAFileThatMixesThem) {
  const TemporaryFolder folder;
  InitOptions options;
  options.to = folder / "";
  init(notices + "batch_norm.onnx", options);
  EXPECT_THAT(read_file(folder / "train.toml"), HasSubstr("batch_norm = \"file\""));
}

TEST(ModelRules, InspectBeginsWithTheShareThatTrains) {
  const InspectReport report = inspect(notices + "quantized/dynamic.onnx");
  EXPECT_THAT(report.text, AllOf(HasSubstr("\nwarning: only 5 of 3,287 weights train (0.15 %)"),
                                 HasSubstr("MatMulInteger")));
  EXPECT_LT(report.text.find("warning: only"), report.text.find("inputs\n"));
  const Json notice = Json::parse(report.json)["notices"][0];
  EXPECT_EQ(notice["kind"], "quantized");
  EXPECT_EQ(notice["warning"], true);
  EXPECT_EQ(notice["trained"], 5);
  EXPECT_EQ(notice["all"], 3287);
}

}  // namespace
}  // namespace tandem::api
