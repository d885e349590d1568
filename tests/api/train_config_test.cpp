// Configurations as structs: they say what files say, and their mistakes are reported as those are.
#include "tandem/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "api/train/config_settings.h"
#include "engine/config/keys/changed_keys.h"
#include "engine/config/run_config.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using testing::digits;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// All keys of a run with their values, in any order.
using Resolved = std::map<std::string, std::string>;
Resolved resolved(const RunConfig& config) { return flat_settings(to_toml(config)); }
Resolved resolved(const TrainConfig& config) {
  return resolved(run_config_of(settings_of(config), config.file));
}

/// models/digits/train.toml, member by member.
TrainConfig digits_config() {
  return {.file = digits + "train.toml",
          .model = {.file = "model.onnx"},
          .batch_size = 32,
          .epochs = 20,
          .seed = 1,
          .loss = {.terms = {{.name = "loss",
                              .kind = SoftmaxCrossEntropyLoss{.logits = "logits",
                                                              .labels = "labels"}}}},
          .optimizer = {.kind = Adam{.lr = 2e-3},
                        .schedule = {.kind = CosineSchedule{.final = 1e-5},
                                     .warmup = Duration::steps(45)}},
          .data = {.kind = DataKind::npz,
                   .train = {.files = std::vector<std::string>{"digits_train.npz"}},
                   .eval = {.files = std::vector<std::string>{"digits_test.npz"}},
                   .fields = {{"image", {.from = {"images"}, .as = {"scale(1/16)"}}},
                              {"labels", {.from = {"labels"}}}}},
          .eval = {.every = Duration::epochs(1),
                   .metrics = {{.kind = EvalMetricKind::accuracy}},
                   .best = "accuracy"},
          .checkpoint = {.every = Duration::epochs(5), .keep = 2},
          .log = {.every = Duration::steps(45)}};
}

TEST(TrainConfigTest, StructsSayWhatAFileSays) {
  EXPECT_EQ(resolved(digits_config()), resolved(read_run_config(digits + "train.toml")));
}

// Files of all models and recipes of the repository.
TEST(TrainConfigTest, WhatIsLoadedAndWrittenIsTheFile) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_folder() + "/models")) {
    const std::string path = entry.path().string();
    if (entry.path().extension() != ".toml" || path.find("policy") != std::string::npos) continue;
    SCOPED_TRACE(path);
    Resolved expected;
    try {
      expected = resolved(read_run_config(path));
    } catch (const Error&) {  // no train.toml, or one of variables that are not set
      continue;
    }
    const TrainConfig config = TrainConfig::load(path);
    EXPECT_EQ(resolved(config), expected);
    EXPECT_EQ(resolved(parse_run_config(config.text(), path)), expected);
    ++files;
  }
  EXPECT_GE(files, 3);
}

/// A file whose keys have values of every form.
constexpr const char* many_forms =
    R"(model = { file = "m.onnx", bind = { sequence = 64 }, batch_norm = [ { at = "a", mode = "file" } ], random = "always" }
batch_size = [ 16, 32 ]
max_time = "90 min"
steps = 100
[parameters]
freeze = [ { at = "a.**", until = "7 steps" } ]
shape = [ { at = "ids:weight", rows = 12 } ]
load = [ { from = "w.npz", rename = [ [ "a.*", "b.*" ] ], missing = "keep" } ]
[loss]
terms = [ { kind = "binary_cross_entropy", logits = "x", labels = "y", pos_weight = 3.0, reduction = "sum" } ]
[optimizer]
kind = "adamw"
lr = 1
betas = [ 0.8, 0.95 ]
groups = [ { at = "a.**", lr = 0.5 }, { at = "b.**", kind = "ftrl", l1 = 0.25, dialect = "tensorflow" } ]
schedule = [ { kind = "constant", length = "10 steps" }, { kind = "linear" } ]
ema = { }
[precision]
compute = "float16"
loss_scale = 1024
[data]
kind = "csv"
separator = ";"
decimal = ","
missing = [ ]
train = { files = "train.csv", sampler = { kind = "weighted", field = "y", class_weights = [ 1, 2 ] } }
eval = { fraction = 0.25 }
fields = { x = "a", y = { from = [ "b", "c" ], as = [ "float32" ] } }
[eval]
metrics = [ "auc", { kind = "gauc", group = "y", name = "by_user" } ]
[log]
also = [ "csv" ]
)";

TEST(TrainConfigTest, EveryFormOfAValueGoesThrough) {
  const TemporaryFolder folder;
  const std::string path = folder / "train.toml";
  write_file(path, many_forms);
  const TrainConfig config = TrainConfig::load(path);
  EXPECT_EQ(resolved(config), resolved(read_run_config(path)));
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(*config.batch_size).size(), 2u);
  EXPECT_EQ(config.max_time, Duration::minutes(90));
  EXPECT_EQ(std::get<AdamW>(*config.optimizer.groups[0].kind).lr, 0.5);
  EXPECT_EQ(std::get<AdamW>(*config.optimizer.groups[0].kind).eps, std::nullopt);
  EXPECT_EQ(std::get<Ftrl>(*config.optimizer.groups[1].kind).dialect, OptimizerDialect::tensorflow);
  EXPECT_TRUE(config.optimizer.ema.has_value());
  EXPECT_EQ(config.data.separator, DataSeparator::semicolon);
  EXPECT_EQ(config.data.decimal, DataDecimal::comma);
  EXPECT_TRUE(config.data.missing.has_value());
  EXPECT_EQ(config.data.fields.at("x").from, std::vector<std::string>{"a"});
  EXPECT_EQ(config.eval.metrics[0].kind, EvalMetricKind::auc);
}

TEST(TrainConfigTest, AGroupThatNamesNoRuleFollowsTheOptimizer) {
  const TemporaryFolder folder;
  const std::string path = folder / "train.toml";
  write_file(path, many_forms);
  TrainConfig config = TrainConfig::load(path);
  std::get<AdamW>(*config.optimizer.kind).eps = 0.125;
  const RunConfig run = run_config_of(settings_of(config), path);
  EXPECT_EQ(run.optimizer.groups[0].options.number("eps"), 0.125);
}

TEST(TrainConfigTest, MistakesAreReportedTogetherByKey) {
  TrainConfig config = digits_config();
  std::get<Adam>(*config.optimizer.kind).lr = -1;
  config.epochs = 0;
  config.eval.best = "auc";
  EXPECT_THAT(error_of([&] { Trainer(config, {}); }),
              AllOf(HasSubstr("TrainConfig: optimizer.lr: out of range"), HasSubstr("epochs"),
                    HasSubstr("eval.best")));
}

TEST(TrainConfigTest, ALoadedFileIsCheckedWithItsLines) {
  const TemporaryFolder folder;
  write_file(folder / "train.toml", "model = \"m.onnx\"\nsteps = -1\n");
  EXPECT_THAT(error_of([&] { TrainConfig::load(folder / "train.toml"); }),
              HasSubstr("train.toml:2:"));
}

}  // namespace
}  // namespace tandem::api
