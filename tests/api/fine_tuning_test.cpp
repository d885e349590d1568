// Runs with adapters and new last layers over the committed digits: what they save, export and
// predict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/export/peft_places.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string adapters =
    "parameters.lora=[{at='{conv2,fc1}:weight', rank=4, alpha=8}, {at='fc2', rank=2, alpha=6}]";

class FineTuningTest : public ::testing::Test {
 protected:
  std::string train(const std::string& name, std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"steps=6", "eval.every=6 steps"});
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / name;
    options.on_message = [this](const std::string& text) { messages_.push_back(text); };
    Trainer(digits + "train.toml", options).run();
    return options.run_dir;
  }
  static std::map<std::string, HostTensor> tensors_of(const std::string& path) {
    std::map<std::string, HostTensor> tensors;
    const SafetensorsFile file(path);
    for (const NamedTensor& t : file.tensors()) tensors[t.name] = t.tensor.clone();
    return tensors;
  }
  static std::vector<float> logits_of(const std::string& model) {
    Session session(model, 8, {cross_entropy, "optimizer.kind=sgd"});
    return session.predict(training_digits().image(0, 8)).at("logits").floats();
  }
  /// The run's own predictions for the held-out digits.
  std::vector<float> predicted(const std::string& run, const std::string& config = "") {
    PredictOptions options;
    options.data = {digits + "digits_test.npz"};
    options.config = config;
    options.outputs = {"logits"};
    options.as = "values";
    options.to = folder_ / "predicted.npy";
    predict_run(run, options);
    const HostTensor values = read_npy(options.to).converted(DType::float32);
    return {values.as<float>().begin(), values.as<float>().end()};
  }
  static void expect_close(const std::vector<float>& got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    ASSERT_FALSE(got.empty());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-4 * std::max(1.0f, std::abs(want[i]))) << i;
  }

  TemporaryFolder folder_;
  std::vector<std::string> messages_;
};

TEST_F(FineTuningTest, ExportsOfAdaptersSayTheSame) {
  const std::string run = train("run", {adapters});
  const std::string merged = folder_ / "merged.onnx", separate = folder_ / "separate.onnx";
  export_run(run, merged, {.checkpoint = "latest"});
  export_run(run, separate, {.checkpoint = "latest", .adapters = {.lora = "separate"}});
  const std::vector<float> now = logits_of(merged), before = logits_of(digits + "model.onnx");
  expect_close(logits_of(separate), now);
  EXPECT_NE(now, before);
  EXPECT_GT(fs::file_size(separate), fs::file_size(merged));
  expect_close(predicted(merged, digits + "train.toml"), predicted(run));
}

TEST_F(FineTuningTest, CheckpointsHoldTheAdaptersAlone) {
  const std::string run = train("run", {adapters, "parameters.train=['fc2:bias']"});
  const auto saved = tensors_of(run + "/checkpoints/step-00000006/model.safetensors");
  EXPECT_EQ(saved.size(), 7u);
  EXPECT_TRUE(saved.contains("conv2.weight/lora_b"));
  EXPECT_TRUE(saved.contains("fc2.bias"));
  const std::string whole = folder_ / "whole.safetensors";
  export_run(run, whole, {.checkpoint = "latest"});
  const auto weights = tensors_of(whole);
  EXPECT_EQ(weights.size(), 8u);
  EXPECT_EQ(weights.at("conv2.weight").shape(), (Shape{32, 16, 3, 3}));
  export_run(run, folder_ / "parts.npz",
             {.checkpoint = "latest", .adapters = {.lora = "separate"}});
  EXPECT_EQ(read_npz(folder_ / "parts.npz").size(), 8u + 6u);
  const auto metrics = nlohmann::json::parse(evaluate_run(run, {}).json)["metrics"];
  EXPECT_TRUE(std::isfinite(metrics["loss"].get<double>()));
}

TEST_F(FineTuningTest, ARunOfAdaptersIsAStart) {
  const std::string run = train("run", {adapters}), whole = folder_ / "whole.onnx";
  export_run(run, whole, {.checkpoint = "best"});
  const auto values = [](const std::string& setting) {
    return Session(digits + "model.onnx", 8, {cross_entropy, "optimizer.kind=sgd", setting})
        .parameters();
  };
  const auto from_run = values("parameters.load=[{from='" + run + "'}]"),
             from_file = values("parameters.load=[{from='" + whole + "'}]");
  for (const auto& [name, value] : from_file)
    EXPECT_EQ(from_run.at(name).floats(), value.floats()) << name;
}

TEST_F(FineTuningTest, AdaptersAsPeftReadsThem) {
  const std::string run = train("run", {adapters}), to = folder_ / "adapter";
  export_run(run, to, {.checkpoint = "latest", .adapters = {.format = "peft"}});
  const auto tensors = tensors_of(to + "/adapter_model.safetensors");
  EXPECT_EQ(tensors.size(), 6u);
  const auto shape = [&](const std::string& name) {
    return tensors.at("base_model.model." + name + ".weight").shape();
  };
  EXPECT_EQ(shape("fc1.lora_A"), (Shape{4, 512}));
  EXPECT_EQ(shape("fc1.lora_B"), (Shape{64, 4}));
  EXPECT_EQ(shape("fc2.lora_A"), (Shape{2, 64}));
  EXPECT_EQ(shape("conv2.lora_A"), (Shape{4, 16, 3, 3}));
  EXPECT_EQ(shape("conv2.lora_B"), (Shape{32, 4, 1, 1}));
  const auto config = nlohmann::json::parse(read_file(to + "/adapter_config.json"));
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["r"], 4);
  EXPECT_EQ(config["lora_alpha"], 8);
  EXPECT_EQ(config["rank_pattern"], nlohmann::json::object({{"fc2", 2}}));
  EXPECT_EQ(config["alpha_pattern"], nlohmann::json::object({{"fc2", 6.0}}));
  EXPECT_EQ(config["target_modules"], nlohmann::json::array({"conv2", "fc1", "fc2"}));
  EXPECT_TRUE(config["modules_to_save"].is_null());
  export_run(run, folder_ / "a.safetensors",
             {.checkpoint = "latest", .adapters = {.format = "peft"}});
  EXPECT_TRUE(fs::exists(folder_ / "adapter_config.json"));
  const std::string both = train("both", {adapters, "parameters.train=['fc2:bias']"});
  EXPECT_THAT(error_of([&] {
                export_run(both, folder_ / "both",
                           {.checkpoint = "latest", .adapters = {.format = "peft"}});
              }),
              AllOf(HasSubstr("fc2.bias"), HasSubstr("not both")));
}

// A wrapper contains everything: if other names are next to it, it is the model itself.
TEST_F(FineTuningTest, APrefixThatIsAPartOfTheModelIsTold) {
  const ExportNames names{.strip = "model.", .add = ""};
  const PeftNames stripped(names);
  EXPECT_EQ(stripped.strip_warning({"model", "model.model.layers.0.q_proj", "model.lm_head"}), "");
  EXPECT_THAT(
      stripped.strip_warning({"lm_head", "model.layers.0.q_proj"}),
      AllOf(HasSubstr("--strip model."), HasSubstr("\"lm_head\""), HasSubstr("leave --strip out")));
  const std::string run = train("run", {adapters});
  const auto exported = [&](const std::string& strip) {
    return export_run(run, folder_ / "to",
                      {.checkpoint = "latest",
                       .names = {.strip = strip, .add = ""},
                       .adapters = {.format = "peft"}});
  };
  EXPECT_THAT(exported("f"), HasSubstr("warning: --strip f"));
  EXPECT_THAT(exported(""), Not(HasSubstr("--strip")));
}

TEST_F(FineTuningTest, PeftHasOneKindOfScalingForAllAdapters) {
  const auto config_of = [&](const std::string& name, const std::string& rules) {
    const std::string run = train(name, {"parameters.lora=[" + rules + "]"});
    export_run(run, folder_ / (name + "_adapter"),
               {.checkpoint = "latest", .adapters = {.format = "peft"}});
    return nlohmann::json::parse(read_file(folder_ / (name + "_adapter/adapter_config.json")));
  };
  const auto all = config_of("all", "{at='{conv2,fc1}:weight', rank=4, alpha=8, rslora=true}");
  EXPECT_EQ(all["use_rslora"], true);
  EXPECT_EQ(all["lora_alpha"], 8);
  const auto some = config_of("some",
                              "{at='conv2:weight', rank=4, alpha=8, rslora=true}, "
                              "{at='fc1:weight', rank=4, alpha=6}");
  EXPECT_EQ(some["use_rslora"], false);
  EXPECT_EQ(some["lora_alpha"], 16);  // 16 / 4 = 8 / sqrt(4)
  EXPECT_EQ(some["alpha_pattern"]["fc1"], 6);
}

TEST_F(FineTuningTest, WrongChoicesOfAnExportAreNamed) {
  const std::string run = train("run", {"parameters.freeze=[{at='conv*'}]"});
  const auto refusal = [&](const std::string& to, const ExportAdapters& how) {
    return error_of([&] { export_run(run, to, {.checkpoint = "latest", .adapters = how}); });
  };
  EXPECT_THAT(refusal(folder_ / "a.onnx", {.lora = "apart"}),
              AllOf(HasSubstr("--lora"), HasSubstr("merged, separate or inputs")));
  EXPECT_THAT(refusal(folder_ / "a.onnx", {.format = "peft"}), HasSubstr("--to"));
  EXPECT_THAT(refusal(folder_ / "a", {.format = "keras"}), HasSubstr("--format"));
  EXPECT_THAT(refusal(folder_ / "a", {.format = "peft"}), HasSubstr("the run has no adapters"));
}

TEST_F(FineTuningTest, ANewLastLayerIsInTheExportedModel) {
  const std::string before = train("before", {});
  const std::vector<std::string> keys{"parameters.head=[{classes=12}]",
                                      "parameters.load=[{from='" + before + "'}]"};
  const std::string run = train("run", keys), model = folder_ / "model.onnx";
  EXPECT_THAT(messages_, Contains(HasSubstr("fc2.weight keeps its values")));
  export_run(run, model, {.checkpoint = "latest"});
  EXPECT_EQ(logits_of(model).size(), 8u * 12u);
  expect_close(predicted(model, digits + "train.toml"), predicted(run));
  const auto outputs = nlohmann::json::parse(inspect(model).json)["outputs"];
  EXPECT_EQ(outputs[0]["dims"][1], "12");
}

TEST_F(FineTuningTest, ANewLastLayerStartsAsPyTorchsLinearDoes) {
  Session session(digits + "model.onnx", 8,
                  {cross_entropy, "optimizer.kind=sgd", "parameters.head=[{classes=40}]"});
  const auto parameters = session.parameters();
  const std::vector<float> weight = parameters.at("fc2.weight").floats();
  ASSERT_EQ(weight.size(), 40u * 64u);
  const float bound = 1.0f / 8;  // 1 / sqrt(64)
  float least = 1, most = -1;
  for (const float w : weight) {
    least = std::min(least, w);
    most = std::max(most, w);
  }
  EXPECT_GE(least, -bound);
  EXPECT_LT(most, bound);
  EXPECT_LT(least, -0.98f * bound);
  EXPECT_GT(most, 0.98f * bound);
  EXPECT_EQ(parameters.at("fc2.bias").shape(), (std::vector<std::int64_t>{40}));
}

TEST_F(FineTuningTest, AdaptersAndANewLastLayerGoTogether) {
  const std::string run = train(
      "run", {"parameters.lora=[{at='fc1:weight', rank=2}]", "parameters.head=[{classes=11}]"});
  const auto saved = tensors_of(run + "/checkpoints/step-00000006/model.safetensors");
  EXPECT_EQ(saved.size(), 4u);
  EXPECT_EQ(saved.at("fc2.weight").shape(), (Shape{11, 64}));
  export_run(run, folder_ / "model.onnx", {.checkpoint = "latest"});
  EXPECT_EQ(logits_of(folder_ / "model.onnx").size(), 8u * 11u);
}

TEST_F(FineTuningTest, RulesThatDoNotFitTheModelAreNamed) {
  const auto refusal = [&](const std::string& key) {
    return error_of([&] { train("refused", {key}); });
  };
  EXPECT_THAT(refusal("parameters.lora=[{at='fc3:weight'}]"),
              AllOf(HasSubstr("matches no parameter"), HasSubstr("did you mean")));
  EXPECT_THAT(refusal("parameters.lora=[{at='fc1:bias'}]"), HasSubstr("no product reads"));
  EXPECT_THAT(refusal("parameters.lora=[{at='fc2', rank=11}]"), HasSubstr("a rank of 1 to 10"));
  EXPECT_THAT(refusal("parameters.head=[{classes=3, at='conv1'}]"),
              HasSubstr("feeds more than the model's outputs"));
  EXPECT_THAT(refusal("distillation={teacher='nowhere.onnx', at={logits='logits'}}"),
              HasSubstr("nowhere.onnx"));
}

TEST_F(FineTuningTest, ATeacherIsPlacedByThePolicyAndStaysOutOfTheExport) {
  const std::string teacher = folder_ / "teacher.onnx";
  fs::copy_file(digits + "model.onnx", teacher);
  const std::string run =
      train("run", {"distillation={teacher='" + teacher + "', at={logits='logits'}}"});
  const auto saved = tensors_of(run + "/checkpoints/step-00000006/model.safetensors");
  EXPECT_EQ(saved.size(), 8u);
  export_run(run, folder_ / "model.onnx", {.checkpoint = "latest"});
  EXPECT_EQ(logits_of(folder_ / "model.onnx").size(), 8u * 10u);
  EXPECT_GT(fs::file_size(teacher) * 5 / 4, fs::file_size(folder_ / "model.onnx"));
  EXPECT_THAT(error_of([&] { export_run(run, teacher, {.checkpoint = "latest"}); }),
              HasSubstr("this file is read"));
  TrainOptions placed;
  placed.overrides = {"steps=2", "distillation={teacher='" + teacher + "', at={logits='logits'}}"};
  placed.run_dir = folder_ / "placed";
  placed.devices = {"gpu=emulated:0"};
  placed.place = {"{ at = \"teacher.**\", on = \"gpu\" }"};
  EXPECT_EQ(Trainer(digits + "train.toml", placed).run().steps, 2u);
}

}  // namespace
}  // namespace tandem::api
