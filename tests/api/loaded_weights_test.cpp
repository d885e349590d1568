// Initial weights from other runs and models, and exports under other names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/formats/safetensors.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class LoadedWeightsTest : public ::testing::Test {
 protected:
  LoadedWeightsTest() { train("run", {"steps=4", "checkpoint.every=2 steps"}); }

  /// Trains on the digits with these keys; the run is inside the folder.
  void train(const std::string& name, std::vector<std::string> overrides) {
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / name;
    options.on_message = [this](const std::string& text) { messages_.push_back(text); };
    Trainer(digits + "train.toml", options).run();
  }
  static std::vector<std::string> loading(const std::string& from, const std::string& more = "") {
    return {"parameters.load=[{from='" + from + "'" + more + "}]"};
  }
  Tensors started(const std::vector<std::string>& settings) const {
    std::vector<std::string> all{cross_entropy, "optimizer.kind=sgd"};
    all.insert(all.end(), settings.begin(), settings.end());
    return Session(digits + "model.onnx", 4, all).parameters();
  }
  /// The tensors of a checkpoint or an exported file.
  static std::map<std::string, std::vector<float>> tensors_of(const std::string& path) {
    std::map<std::string, std::vector<float>> tensors;
    const SafetensorsFile file(path);
    for (const NamedTensor& t : file.tensors()) {
      const auto values = t.tensor.as<float>();
      tensors[t.name] = {values.begin(), values.end()};
    }
    return tensors;
  }
  void expect_equal(const Tensors& parameters, const std::string& file) {
    const auto expected = tensors_of(file);
    ASSERT_FALSE(expected.empty());
    ASSERT_EQ(parameters.size(), expected.size());
    for (const auto& [name, values] : expected) {
      const auto got = parameters.at(name).floats();
      EXPECT_EQ(std::vector<float>(got.begin(), got.end()), values) << name;
    }
  }
  std::string checkpoint(const std::string& step) const {
    return folder_ / "run/checkpoints/step-0000000" + step;
  }

  TemporaryFolder folder_;
  std::vector<std::string> messages_;
};

TEST_F(LoadedWeightsTest, OfARunTheCheckpointThatExportTakes) {
  export_run(folder_ / "run", folder_ / "w.safetensors");
  expect_equal(started(loading(folder_ / "run")), folder_ / "w.safetensors");
  expect_equal(started(loading(folder_ / "run/")), folder_ / "w.safetensors");
  expect_equal(started(loading(checkpoint("2"))), checkpoint("2") + "/model.safetensors");
  EXPECT_NE(tensors_of(checkpoint("2") + "/model.safetensors"),
            tensors_of(folder_ / "w.safetensors"));
  messages_.clear();
  train("next", {"steps=1", loading(folder_ / "run")[0]});
  EXPECT_THAT(messages_, Contains(HasSubstr("loaded ")));
  EXPECT_THAT(messages_, Contains(HasSubstr("checkpoint " + (folder_ / "run/checkpoints/step-"))));
  EXPECT_THAT(error_of([&] { started(loading(folder_ / "nowhere")); }),
              HasSubstr("neither a run directory nor a checkpoint"));
}

TEST_F(LoadedWeightsTest, OfAModelItsInitializers) {
  export_run(folder_ / "run", folder_ / "trained.onnx");
  export_run(folder_ / "run", folder_ / "w.safetensors");
  expect_equal(started(loading(folder_ / "trained.onnx")), folder_ / "w.safetensors");
}

TEST_F(LoadedWeightsTest, ExportsLoseAndGetPrefixes) {
  const ExportNames names{.strip = "fc1.", .add = "m."};
  export_run(folder_ / "run", folder_ / "w.safetensors");
  export_run(folder_ / "run", folder_ / "m.safetensors", {.names = {.add = "m."}});
  const auto plain = tensors_of(folder_ / "w.safetensors");
  for (const auto& [name, values] : tensors_of(folder_ / "m.safetensors"))
    EXPECT_EQ(values, plain.at(name.substr(2))) << name;
  expect_equal(started(loading(folder_ / "m.safetensors", ", strip='m.'")),
               folder_ / "w.safetensors");
  export_run(folder_ / "run", folder_ / "s.safetensors", {.names = names});
  const auto stripped = tensors_of(folder_ / "s.safetensors");
  EXPECT_EQ(stripped.at("m.weight"), plain.at("fc1.weight"));
  EXPECT_EQ(stripped.at("m.fc2.weight"), plain.at("fc2.weight"));
  EXPECT_THAT(error_of([&] { export_run(folder_ / "run", folder_ / "m.onnx", {.names = names}); }),
              HasSubstr("the names in an .onnx file are the model's own"));
  EXPECT_THAT(
      error_of(
          [&] { export_run(folder_ / "run", folder_ / "n.npz", {.names = {.strip = "fc3."}}); }),
      AllOf(HasSubstr("no tensor's name begins with"), HasSubstr("fc3."), HasSubstr("conv1.")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "n.npz"));
}

TEST_F(LoadedWeightsTest, WhatARunStartsFromIsNotWrittenOver) {
  train("next", {"steps=1", loading(folder_ / "run")[0]});
  for (const std::string& to :
       {checkpoint("2") + "/model.safetensors", folder_ / "run/checkpoints/new.npz"}) {
    EXPECT_THAT(error_of([&] { export_run(folder_ / "next", to); }), HasSubstr("this file is read"))
        << to;
  }
}

}  // namespace
}  // namespace tandem::api
