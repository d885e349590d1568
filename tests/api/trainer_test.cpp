// A run described by a train.toml, through the public library: run, resume, export, inspect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/program/keys.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::digits;
using tandem::testing::digits_model;
using tandem::testing::error_of;
using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string config = source_folder() + "/models/digits/train.toml";

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

class ApiTrainerTest : public ::testing::Test {
 protected:
  TrainOptions options(std::vector<std::string> overrides) {
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / "run";
    options.on_message = [this](const std::string& text) { messages_.push_back(text); };
    options.on_progress = [this](const Progress& p) { progress_.push_back(p); };
    return options;
  }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> messages_;
  std::vector<Progress> progress_;
};

TEST_F(ApiTrainerTest, TrainsResumesAndExports) {
  Trainer trainer(config, options({"steps=45", "checkpoint.every=20 steps"}));
  EXPECT_THAT(trainer.summary(), HasSubstr("38282 parameters"));
  EXPECT_THAT(trainer.summary(), HasSubstr("training   45 steps, 45 steps per epoch, batch 32"));
  const TrainResult result = trainer.run();
  EXPECT_EQ(result.steps, 45u);
  EXPECT_EQ(result.run_dir, folder_ / "run");
  EXPECT_GT(result.evaluation.at("accuracy"), 0.7);
  EXPECT_FALSE(progress_.empty());
  for (const char* file : {"train.resolved.toml", "policy.toml", "placement.json", "plan.json",
                           "metrics.jsonl", "train.log", "summary.json", "checkpoints/best",
                           "checkpoints/step-00000045/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(folder_ / "run" + "/" + file)) << file;
  }
  const Json placement = read_json(folder_ / "run/placement.json");
  for (const Json& node : placement["nodes"]) EXPECT_EQ(node["device"], "cpu");

  // The resolved file describes the same run.
  TrainOptions again = options({});
  again.run_dir = folder_ / "again";
  EXPECT_EQ(Trainer(folder_ / "run/train.resolved.toml", again).run().loss, result.loss);

  TrainOptions more = options({"steps=50"});
  more.resume = true;
  Trainer resumed(config, more);
  EXPECT_THAT(resumed.summary(), HasSubstr("training   45 steps per epoch, batch 32"));
  EXPECT_EQ(resumed.run().steps, 50u);
  EXPECT_THAT(messages_, Contains("resumed at step 45"));

  for (const char* file : {"trained.onnx", "weights.safetensors", "weights.npz"}) {
    EXPECT_THAT(export_run(folder_ / "run", folder_ / file), HasSubstr(file));
    EXPECT_TRUE(fs::exists(folder_ / file));
  }
  export_run(folder_ / "run", folder_ / "best.onnx", {.checkpoint = "best"});
  export_run(folder_ / "run", folder_ / "step.onnx", {.checkpoint = "45"});
  export_run(folder_ / "run/checkpoints/step-00000045", folder_ / "path.onnx");
  EXPECT_FALSE(inspect(folder_ / "trained.onnx").blocks_training);
  EXPECT_THAT(
      error_of([&] { export_run(folder_ / "run", folder_ / "x.onnx", {.checkpoint = "46"}); }),
      HasSubstr("no such checkpoint"));
}

/// Limits files of this process to `bytes`, as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(ApiTrainerTest, AnExportThatFailsLeavesNothing) {
  Trainer(config, options({"steps=1"})).run();
  for (const std::string name : {"trained.onnx", "weights.safetensors", "weights.npz"}) {
    const std::string folder = folder_ / ("of_" + name);
    fs::create_directory(folder);
    std::string refused;
    {
      const SmallFiles full(1000);
      refused =
          error_of([&] { export_run(folder_ / "run", folder + "/" + name); }, ErrorKind::runtime);
    }
    EXPECT_NE(refused, "no error") << name;
    EXPECT_TRUE(fs::is_empty(folder)) << name;
  }
}

TEST_F(ApiTrainerTest, ADryRunWritesNothing) {
  TrainOptions dry = options({});
  dry.dry_run = true;
  Trainer trainer(config, dry);
  EXPECT_THAT(trainer.summary(), HasSubstr("placement"));
  trainer.run();
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(ApiTrainerTest, ConfigurationMistakesComeTogether) {
  const std::string text = error_of([&] {
    Trainer(config, options({"optimizer.lrr=1", "batchsize=3"}));
  });
  EXPECT_THAT(text, HasSubstr("optimizer.lr"));
  EXPECT_THAT(text, HasSubstr("batch_size"));
  EXPECT_THAT(error_of([&] { Trainer(folder_ / "none.toml", options({})); }),
              HasSubstr("no such file"));
  TrainOptions far = options({"device=gpu"});
  far.devices = {"gpu=cuda:63"};  // exists on no machine
  EXPECT_THAT(error_of([&] { Trainer(config, far); }),
              HasSubstr("try it with --device gpu=emulated:0"));
  TrainOptions resume = options({});
  resume.resume = true;
  const std::string run = folder_ / "run";
  EXPECT_THAT(error_of([&] { Trainer(config, resume); }),
              HasSubstr(run + ": there is no such run to resume (leave --resume out"));
  fs::create_directory(run);
  EXPECT_THAT(error_of([&] { Trainer(config, resume); }),
              HasSubstr(run + ": this is no run to resume: it has no checkpoints"));
  for (const char* file : {"train.toml", "model.onnx", "digits_train.npz", "digits_test.npz"})
    fs::copy(digits + file, folder_ / file);
  resume.run_dir.clear();
  EXPECT_THAT(error_of([&] { Trainer(folder_ / "train.toml", resume); }),
              HasSubstr("train.toml: there is no unfinished run to resume"));
}

TEST_F(ApiTrainerTest, OptionsThatTheCommandLineRulesOutAreTold) {
  TrainOptions dry = options({"optimizer.schedule.kind=constant"});
  dry.dry_run = true;
  EXPECT_THAT(
      Trainer(config, dry).summary(),
      HasSubstr("optimizer.schedule.final: not an option of constant, which the command line "
                "sets: this is left out"));
}

TEST_F(ApiTrainerTest, FilesThatAreGoneAreToldWithTheirKeys) {
  for (const char* file : {"train.toml", "model.onnx", "digits_train.npz", "digits_test.npz"})
    fs::copy(digits + file, folder_ / file);
  const std::string here = folder_ / "train.toml", run = folder_ / "run";
  Trainer(here, options({"steps=1"})).run();
  fs::rename(folder_ / "model.onnx", folder_ / "moved.onnx");
  const std::string of_run = "`model` of " + run + "/train.resolved.toml:";
  EXPECT_THAT(error_of([&] { evaluate_run(run, {}); }), HasSubstr(of_run));
  EXPECT_THAT(error_of([&] { export_run(run, folder_ / "trained.onnx"); }), HasSubstr(of_run));
  TrainOptions again = options({"steps=1"});
  again.run_dir = folder_ / "again";
  EXPECT_THAT(error_of([&] { Trainer(here, again); }),
              HasSubstr("`model` of " + here + ":3:14 names it: put the file there"));
  TrainedOptions moved;
  moved.overrides = {"model.file=" + (folder_ / "moved.onnx")};
  EXPECT_EQ(error_of([&] { evaluate_run(run, moved); }), "no error");

  again.overrides.push_back("policy=nowhere.toml");
  EXPECT_THAT(error_of([&] { Trainer(here, again); }),
              HasSubstr("/nowhere.toml: there is no such policy file: expected a policy.toml "
                        "(`policy` of the command line names it"));
}

TEST_F(ApiTrainerTest, KeptOperatorsMustExist) {
  EXPECT_THAT(error_of([&] {
                Trainer(config, options({"precision.compute=bfloat16",
                                         "precision.keep_float32=[\"nosuch\"]"}))
                    .run();
              }),
              HasSubstr("command line: precision.keep_float32: \"nosuch\" matches no operator"));
}

TEST_F(ApiTrainerTest, ARunInFloat16IsUsedInFloat32) {
  Trainer(config, options({"precision.compute=float16", "steps=2"})).run();
  TrainedOptions wide;
  wide.overrides = {"precision.compute=float32"};
  EXPECT_TRUE(Json::accept(evaluate_run(folder_ / "run", wide).json));
  TrainOptions again = options(wide.overrides);
  again.run_dir = folder_ / "again";
  EXPECT_EQ(Trainer(folder_ / "run/train.resolved.toml", again).run().steps, 2u);
}

// Sums of 64 pixels times 1e4 exceed 65504.
TEST_F(ApiTrainerTest, WhatFloat16CannotHoldIsSaid) {
  const std::vector<std::string> keys{
      "precision.compute=float16", "steps=1",
      "parameters.init=[{at=\"**\", kind=\"constant\", value=1e4}]"};
  TrainOptions narrow = options(keys);
  narrow.overrides.push_back("device=gpu");
  narrow.devices = {"gpu=emulated:0"};
  EXPECT_THAT(error_of([&] { Trainer(config, narrow).run(); }, ErrorKind::diverged),
              ::testing::AllOf(HasSubstr("the loss is not finite at step 1"),
                               HasSubstr("(float16 ends at 65504"),
                               HasSubstr("precision.compute = \"bfloat16\"")));
  TrainOptions on_host = options(keys);  // computes in float32
  on_host.run_dir = folder_ / "host";
  EXPECT_EQ(Trainer(config, on_host).run().steps, 1u);
}

TEST_F(ApiTrainerTest, DataMistakesAreOfTheirOwnKind) {
  error_of([&] { Trainer(config, options({"data.train.files=[\"none.npz\"]"})); }, ErrorKind::data);
}

TEST(InspectTest, SaysWhatIsInAModel) {
  InspectOptions options;
  options.bind = {{"batch", 4}};
  const InspectReport report = inspect(digits_model, options);
  EXPECT_FALSE(report.blocks_training);
  EXPECT_THAT(report.text, HasSubstr("8 trainable (38282 elements)"));
  const Json json = Json::parse(report.json);
  EXPECT_EQ(json["inputs"][0]["name"], "image");
  EXPECT_EQ(json["parameters"].size(), 8u);
  EXPECT_EQ(json["operators"]["Conv"], 2);
  EXPECT_TRUE(json["problems"].empty());
  for (const Json& p : json["parameters"]) {
    EXPECT_TRUE(p["trainable"]) << p;
    EXPECT_FALSE(p["reason"].get<std::string>().empty());
  }
}

TEST(InspectTest, EveryStageIsText) {
  for (const auto& [stage, part] : {std::pair{"graph", "Conv"},
                                    {"training", "ConvGradWeight"},
                                    {"lowered", "Conv"},
                                    {"plan", "cpu"}}) {
    InspectOptions options;
    options.bind = {{"batch", 4}};
    options.stage = stage;
    EXPECT_THAT(inspect(digits_model, options).text, HasSubstr(part)) << stage;
  }
}

TEST(InspectTest, PlacementNamesDevicesAndReasons) {
  InspectOptions options;
  options.bind = {{"batch", 4}};
  options.stage = "placement";
  const InspectReport report = inspect(digits_model, options);
  EXPECT_THAT(report.text, HasSubstr("devices: cpu"));
  EXPECT_THAT(report.text, HasSubstr("fc2.weight (default)"));
  const Json placement = Json::parse(report.json)["placement"];
  EXPECT_EQ(placement["devices"], Json::array({"cpu"}));
  EXPECT_EQ(placement["nodes"][0]["reason"], "default");
  EXPECT_EQ(placement["states"][0]["param"], "cpu");
}

TEST(InspectTest, PassesThatAreLeftOut) {
  InspectOptions options;
  options.without = pass_names();
  EXPECT_NO_THROW(inspect(digits_model, options));
  for (const char* name :
       {"fold_constants", "recognise_gelu", "fuse", "reuse_inputs", "channels_last"})
    EXPECT_THAT(pass_names(), Contains(name));
  options.without = {"recognise_gellu", "output_copies"};
  const std::string text = error_of([&] { inspect(digits_model, options); });
  EXPECT_THAT(text, HasSubstr("did you mean \"recognise_gelu\"?"));
  EXPECT_THAT(text, HasSubstr("got output_copies"));
}

TEST(InspectTest, AFileThatIsNoModel) {
  EXPECT_NE(error_of([] { inspect(config); }), "no error");
  EXPECT_NE(error_of([] { inspect("/nowhere.onnx"); }), "no error");
}

TEST(ConfigKeysTest, AreListedAndExplained) {
  EXPECT_THAT(config_keys(false), HasSubstr("optimizer.lr"));
  const Json json = Json::parse(config_keys(true));
  const auto find = [&](const std::string& wanted) -> Json {
    for (const Json& key : json["keys"]) {
      if (key["key"] == wanted) return key;
    }
    return {};
  };
  const Json power = find("optimizer.schedule.power")["kinds"];
  EXPECT_EQ(power.size(), 1U);
  EXPECT_EQ(power["polynomial"]["type"], "number");
  EXPECT_EQ(power["polynomial"]["default"], "1.0");
  EXPECT_EQ(find("optimizer.lr")["kinds"]["lion"]["default"], "1e-04");
  EXPECT_EQ(find("loss.terms[].logits")["kinds"]["dice"]["default"], "required");
  EXPECT_FALSE(find("loss.terms[].weight").contains("kinds"));
  EXPECT_TRUE(find("optimizer.lr")["session"]);
  EXPECT_FALSE(find("epochs")["session"]);
  EXPECT_EQ(json["kinds"]["optimizer.kind"]["adamw"]["source"], "PyTorch's AdamW");
  EXPECT_TRUE(Json::accept(config_keys(true, true)));
  EXPECT_TRUE(Json::accept(config_schema()));
  EXPECT_THAT(config_explain("optimizer.lr"), HasSubstr("learning rate"));
  EXPECT_THAT(error_of([] { config_explain("optimizer.lrr"); }), HasSubstr("optimizer.lr"));
}

}  // namespace
}  // namespace tandem::api
