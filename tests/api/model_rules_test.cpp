// BatchNormalization as a configuration and the file say, compared with PyTorch's losses
// (tests/scripts/model_notices.py). Messages: tests/expected/commands/inspect.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

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

}  // namespace
}  // namespace tandem::api
