// Files with a backbone in inference and a neck in training: losses compared with PyTorch's, and
// what `init` writes (tests/scripts/traced_batch_norm.py, model_notices.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "api/program/init.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
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
const std::string traced = notices + "traced/";

Json expected_json(const std::string& folder = traced) {
  std::ifstream stream(folder + "expected.json");
  return Json::parse(stream);
}

/// Writes a run with 16 samples of `of` in two steps; parameters that `frozen` covers do not train.
void write_run(const TemporaryFolder& folder, const Json& of, const std::string& model,
               const std::string& frozen, const std::string& rate = "0.1") {
  write_npz(folder / "train.npz",
            {{"x", HostTensor::from<float>({16, 2, 3, 3}, of["x"].get<std::vector<float>>())},
             {"labels", HostTensor::from<std::int64_t>(
                            {16}, of["labels"].get<std::vector<std::int64_t>>())}});
  std::ofstream(folder / "train.toml") << "model = \"" << model << R"("
batch_size = 8
epochs = 1
[parameters]
freeze = [ { at = ")" << frozen << R"(" } ]
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "y", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = )" << rate << R"(
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
shuffle = "none"
[log]
every = "1 steps"
)";
}

void write_traced_run(const TemporaryFolder& folder, const std::string& model,
                      const std::string& frozen, const std::string& rate = "0.1") {
  write_run(folder, expected_json(), traced + model, frozen, rate);
}

/// The losses of a run with the key model.batch_norm; with "", without it.
std::vector<double> traced_losses(const TemporaryFolder& folder, const std::string& mode) {
  TrainOptions options;
  options.run_dir = folder / ("run_" + std::to_string(mode.size()));
  if (!mode.empty()) options.overrides = {"model.batch_norm=" + mode};
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
  const Json of = expected_json(notices)["batch_norm.onnx"], expected = of["losses"];
  write_run(folder, of, notices + "batch_norm.onnx", "backbone.**");
  const auto expect = [&](const std::string& key, const char* mode) {
    SCOPED_TRACE(key);
    const std::vector<double> losses = traced_losses(folder, key);
    ASSERT_EQ(losses.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(losses[i], expected[mode][i], 2e-5);
  };
  expect("", "train");
  expect("file", "file");
  expect("inference", "inference");
  expect("[{at=\"backbone.**\", mode=\"inference\"}]", "file");
}

TEST(TracedBatchNorm, TrainsAsPyTorchDoes) {
  const Json expected = expected_json()["losses"];
  for (const char* model : {"mixed.onnx", "names.onnx"}) {
    const TemporaryFolder folder;
    write_traced_run(folder, model, "backbone.**");
    for (const char* mode : {"file", "train", "inference"}) {
      SCOPED_TRACE(std::string(model) + " " + mode);
      const std::vector<double> losses = traced_losses(folder, mode);
      ASSERT_EQ(losses.size(), 2u);
      for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(losses[i], expected[mode][i], 2e-5);
    }
  }
}

/// The gradient passes through the statistics of the batch, which the file computes.
TEST(TracedBatchNorm, WithoutRunningStatisticsTrainsAsPyTorchDoes) {
  const Json expected = expected_json()["computed_losses"];
  const TemporaryFolder folder;
  write_traced_run(folder, "computed.onnx", "fc", "2");  // so that wrong gradients show
  for (const char* mode : {"file", "train", "inference"}) {
    SCOPED_TRACE(mode);
    const std::vector<double> losses = traced_losses(folder, mode);
    ASSERT_EQ(losses.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(losses[i], expected[mode][i], 2e-5);
  }
}

TEST(TracedBatchNorm, WithoutAWordOfItsModeIsRefused) {
  const TemporaryFolder folder;
  write_traced_run(folder, "stripped.onnx", "backbone.**");
  TrainOptions options;
  options.dry_run = true;
  options.overrides = {"model.batch_norm=file"};
  const std::string text =
      tandem::testing::error_of([&] { Trainer(folder / "train.toml", options); });
  EXPECT_THAT(text, AllOf(HasSubstr("the file does not say whether it trains"),
                          HasSubstr("{ at = \"BatchNormalization#0\", mode = \"train\" }")));
}

TEST(TracedBatchNorm, InitTakesTheModesOfAFileThatMixesThem) {
  for (const char* model : {"mixed.onnx", "names.onnx", "eval.onnx", "stripped.onnx"}) {
    SCOPED_TRACE(model);
    const TemporaryFolder folder;
    InitOptions options;
    options.to = folder / "";
    init(traced + model, options);
    const std::string text = read_file(folder / "train.toml");
    const std::string name = model;
    if (name == "mixed.onnx" || name == "names.onnx") {
      EXPECT_THAT(text, HasSubstr("batch_norm = \"file\""));
    } else {
      EXPECT_THAT(text, Not(HasSubstr("batch_norm")));
    }
  }
}

}  // namespace
}  // namespace tandem::api
