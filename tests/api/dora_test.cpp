// Runs with weight-decomposed adapters over the committed digits: what they start from, save and
// export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string with_magnitudes =
    "parameters.lora=[{at='{conv2,fc1}:weight', rank=4, alpha=8, dora=true}]";

class DoraRun : public ::testing::Test {
 protected:
  std::string train(const std::string& name, std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"steps=6", "eval.every=6 steps"});
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / name;
    Trainer(digits + "train.toml", options).run();
    return options.run_dir;
  }
  static Tensors parameters_with(const std::vector<std::string>& more) {
    std::vector<std::string> settings{cross_entropy, "optimizer.kind=sgd"};
    settings.insert(settings.end(), more.begin(), more.end());
    return Session(digits_model, 8, settings).parameters();
  }

  TemporaryFolder folder_;
};

TEST_F(DoraRun, MagnitudesStartWithTheNormsOfLoadedWeights) {
  const std::string load = "parameters.load=[{from='" + train("before", {}) + "'}]";
  const std::vector<float> weight = parameters_with({load}).at("fc1.weight").floats();
  const std::vector<float> magnitudes =
      parameters_with({load, with_magnitudes}).at("fc1.weight/lora_magnitude").floats();
  ASSERT_EQ(magnitudes.size(), 64u);  // fc1 is stored as [64, 512]
  for (std::size_t o = 0; o < 64; ++o) {
    double sum = 0;
    for (std::size_t i = 0; i < 512; ++i) sum += std::pow(weight[512 * o + i], 2.0);
    EXPECT_NEAR(magnitudes[o], std::sqrt(sum), 1e-5) << o;
  }
}

TEST_F(DoraRun, TheMergedModelComputesWhatTheRunDoes) {
  const std::string run = train("run", {with_magnitudes}), merged = folder_ / "merged.onnx";
  const SafetensorsFile saved(run + "/checkpoints/step-00000006/model.safetensors");
  ASSERT_NE(saved.find("fc1.weight/lora_magnitude"), nullptr);
  EXPECT_EQ(saved.tensors().size(), 6u);
  export_run(run, merged, {.checkpoint = "latest"});
  VerifyOptions options;
  options.checkpoint = "latest";
  options.python = "";
  EXPECT_TRUE(verify_export(run, merged, options).agrees);
}

TEST_F(DoraRun, PeftGetsTheMagnitudes) {
  const std::string run = train("run", {with_magnitudes}), to = folder_ / "adapter";
  export_run(run, to, {.checkpoint = "latest", .adapters = {.format = "peft"}});
  const SafetensorsFile file(to + "/adapter_model.safetensors");
  const auto shape = [&](const std::string& module) {
    return file.find("base_model.model." + module + ".lora_magnitude_vector")->shape();
  };
  EXPECT_EQ(shape("fc1"), (Shape{64}));
  EXPECT_EQ(shape("conv2"), (Shape{1, 32, 1, 1}));
  EXPECT_EQ(nlohmann::json::parse(read_file(to + "/adapter_config.json"))["use_dora"], true);
}

TEST_F(DoraRun, WhatCannotHoldMagnitudesIsRefused) {
  const std::string run = train("run", {with_magnitudes});
  const auto refusal = [&](const std::string& to, const ExportAdapters& how) {
    return error_of([&] { export_run(run, to, {.checkpoint = "latest", .adapters = how}); });
  };
  for (const char* lora : {"separate", "inputs"})
    EXPECT_THAT(refusal(folder_ / "a.onnx", {.lora = lora}),
                AllOf(HasSubstr("dora"), HasSubstr("--lora merged")));
  EXPECT_THAT(refusal(folder_ / "a.onnx_adapter", {}), HasSubstr("dora"));
  const std::string some = train("some", {"parameters.lora=[{at='conv2:weight', rank=2}, "
                                          "{at='fc1:weight', rank=2, dora=true}]"});
  EXPECT_THAT(error_of([&] {
                export_run(some, folder_ / "b",
                           {.checkpoint = "latest", .adapters = {.format = "peft"}});
              }),
              HasSubstr("one use_dora"));
}

}  // namespace
}  // namespace tandem::api
