// Reports of `inspect` and `train` on models: numbers of parameters, all missing operators, losses
// by an export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string exports = source_folder() + "/tests/data/exports/";

TEST(InspectText, CountsParametersAndListsThemWhereAsked) {
  InspectOptions options;
  const std::string model = exports + "mlp_norm.torchscript.onnx";
  const std::string counted = inspect(model, options).text;
  EXPECT_THAT(counted, AllOf(HasSubstr("parameters: 6 trainable (47 elements), 2 running "
                                       "statistics; --parameters lists them"),
                             Not(HasSubstr("running statistics of"))));
  options.parameters = true;
  EXPECT_THAT(inspect(model, options).text,
              AllOf(HasSubstr("  kept   1:running_mean"), HasSubstr("running statistics of 1."),
                    HasSubstr("  train  0:weight"), Not(HasSubstr("--parameters"))));
}

// Rules of parameters.lora need the names of modules before any length is bound.
TEST(InspectText, FreeLengthsHideNoNames) {
  const std::string model = source_folder() + "/tests/data/language_models/llama.onnx";
  InspectOptions options;
  options.parameters = true;
  const InspectReport report = inspect(model, options);
  EXPECT_TRUE(report.blocks_training);
  EXPECT_THAT(report.text, AllOf(HasSubstr("tandem init MODEL --data DATA"),
                                 HasSubstr("self_attn.q_proj:weight"), HasSubstr("; read by ")));
  const Json free = Json::parse(report.json)["parameters"];
  options.bind = {{"sequence_length", 16}};
  EXPECT_EQ(free, Json::parse(inspect(model, options).json)["parameters"]);
}

TEST(InspectText, WhatTheExportHasLost) {
  const InspectReport report = inspect(exports + "gpt.dynamo_default.onnx");
  EXPECT_FALSE(report.blocks_training);
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("what the export has lost\n  the file was exported for inference"),
                    HasSubstr("fixed by torch.onnx.export(model.train()"),
                    HasSubstr("ready to train, but for what the export has lost")));
  const Json note = Json::parse(report.json)["export_notes"][0];
  EXPECT_EQ(note["kind"], "for_inference");
  EXPECT_THAT(note["fix"].get<std::string>(), HasSubstr("optimize=False"));
  const InspectReport good = inspect(exports + "gpt.dynamo.onnx");
  EXPECT_THAT(good.text, Not(HasSubstr("lost")));
  EXPECT_TRUE(Json::parse(good.json)["export_notes"].empty());
}

// The table as text, and the same data as a list.
TEST(InspectText, MissingOperators) {
  const tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "model.onnx", std::ios::binary)
      << tandem::testing::SmallModel()
             .input("x", {2, 3})
             .weight("w", {3, 3}, 0.5f)
             .node("Nonsense", "first", {"x"}, "a")
             .node("MatMul", "product", {"a", "w"}, "b")
             .node("Nonsense", "second", {"b"}, "c")
             .node("Other", "third", {"c"}, "logits")
             .output("logits", {2, 3})
             .bytes();
  const InspectReport report = inspect(folder / "model.onnx");
  EXPECT_TRUE(report.blocks_training);
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("not ready to train: 2 operators are missing (3 of 4 nodes)\n"
                              "  operator  nodes  first at  why (what would help)\n"
                              "  Nonsense      2  first     "),
                    HasSubstr("\n  Other         1  third     "),
                    HasSubstr("parameters: 1 trainable (9 elements)")));
  EXPECT_LT(report.text.find("missing"), report.text.find("inputs\n"));
  const Json missing = Json::parse(report.json)["missing_operators"];
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0]["operator"], "Nonsense");
  EXPECT_EQ(missing[0]["count"], 2);
  EXPECT_EQ(missing[0]["path"], "first");
  EXPECT_FALSE(missing[0]["help"].get<std::string>().empty());
}

// Without --bind the file's own batch size is used, which its constants may contain.
TEST(PolicyOfAModel, TakesTheBatchThatTheFileFixes) {
  PolicyOptions options;
  options.model = exports + "gpt.torchscript.onnx";
  const Json names = Json::parse(policy_names(options, "token.*").json)["names"];
  EXPECT_EQ(names[0]["path"], "token.Gather");
  EXPECT_EQ(names[0]["shape"], Json({2, 6, 8}));
}

// `train` and `--dry-run` warn, but not of rows that the configuration fixes, nor of tables that it
// freezes.
TEST(TrainSummary, WarnsOfWhatTheExportHasLost) {
  const tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "train.toml") << "model = \"" << exports << R"(bag_padding.dynamo.onnx"
batch_size = 2
steps = 1
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "linear", labels = "labels" } ]
[optimizer]
kind = "sgd"
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
)";
  write_npz(folder / "train.npz", {{"x", HostTensor(TensorType{DType::int64, {4, 3}})},
                                   {"labels", HostTensor(TensorType{DType::int64, {4}})}});
  TrainOptions options;
  options.dry_run = true;
  EXPECT_THAT(Trainer(folder / "train.toml", options).summary(),
              HasSubstr("\nwarning    table:weight: row 0 is the model's padding_idx"));
  options.overrides = {R"(parameters.fixed_rows=[{at="table:weight", rows=[0]}])"};
  EXPECT_THAT(Trainer(folder / "train.toml", options).summary(), Not(HasSubstr("padding_idx")));
  options.overrides = {R"(parameters.freeze=[{at="table:weight"}])"};
  EXPECT_THAT(Trainer(folder / "train.toml", options).summary(), Not(HasSubstr("padding_idx")));
  options.overrides = {R"(parameters.freeze=[{at="table:weight", until="1 steps"}])", "steps=2"};
  EXPECT_THAT(Trainer(folder / "train.toml", options).summary(), HasSubstr("padding_idx"));
}

}  // namespace
}  // namespace tandem::api
