// The configurations that `init` makes for language models as optimum exports them: positions,
// masks and labels, and a first loss equal to that of transformers.
// tests/scripts/language_models.py makes the models and the losses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/init/roles.h"
#include "api/program/init.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

const std::string& models_folder() {
  static const std::string folder = source_folder() + "/tests/data/language_models/";
  return folder;
}

const Json& language_models() {
  static const Json all = Json::parse(read_file(models_folder() + "losses.json"));
  return all;
}

HostTensor array_of(const Json& values) {
  if (!values[0].is_array()) {
    const auto flat = values.get<std::vector<std::int64_t>>();
    return HostTensor::from<std::int64_t>({static_cast<std::int64_t>(flat.size())}, flat);
  }
  std::vector<std::int64_t> flat;
  for (const Json& row : values)
    for (const Json& value : row) flat.push_back(value.get<std::int64_t>());
  return HostTensor::from<std::int64_t>(
      {static_cast<std::int64_t>(values.size()), static_cast<std::int64_t>(values[0].size())},
      flat);
}

class InitLanguageModels : public ::testing::Test {
 protected:
  void take_model(const std::string& name) const {
    std::filesystem::copy_file(models_folder() + name + ".onnx", folder_ / "model.onnx");
  }
  void write_arrays(const std::vector<std::pair<std::string, HostTensor>>& arrays) const {
    std::filesystem::create_directory(folder_ / "data");
    std::vector<NamedTensor> named;
    for (const auto& [name, values] : arrays) named.push_back({name, values});
    write_npz(folder_ / "data/train.npz", named);
  }
  InitReport guessed() const {
    return init(folder_ / "model.onnx", {.data = folder_ / "data", .to = folder_.path()});
  }
  std::string config() const { return read_file(folder_ / "train.toml"); }
  /// The loss of the first step over all samples, before any training.
  double first_loss() const {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.overrides = {"batch_size=8", "epochs=1", "optimizer={ kind = \"sgd\", lr = 1e-9 }",
                         "data.train.shuffle=\"none\""};
    Trainer trainer(folder_ / "train.toml", options);
    return trainer.run().loss;
  }

  TemporaryFolder folder_;
};

TEST_F(InitLanguageModels, ALlamaTrainsOnTheNextIdOfItsRows) {
  take_model("llama");
  write_arrays({{"input_ids", array_of(language_models()["ids"])}});
  const InitReport report = guessed();
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(config(), AllOf(HasSubstr("position_ids"), HasSubstr("\"positions\""),
                              HasSubstr("\"fill(1)\""), HasSubstr("\"next\"")));
  EXPECT_NEAR(first_loss(), language_models()["losses"]["llama"].get<double>(), 1e-5);
}

// transformers shifts labels itself, so that data for it has the ids as labels.
TEST_F(InitLanguageModels, LabelsThatRepeatTheIdsAreMovedByOnePlace) {
  take_model("gpt2");
  const HostTensor ids = array_of(language_models()["ids"]);
  write_arrays({{"input_ids", ids}, {"labels", ids}});
  const InitReport report = guessed();
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(report.text, HasSubstr("they repeat \"input_ids\""));
  EXPECT_NEAR(first_loss(), language_models()["losses"]["gpt2"].get<double>(), 1e-5);
}

TEST_F(InitLanguageModels, ABertGetsItsMaskAndSegments) {
  take_model("bert");
  write_arrays({{"input_ids", array_of(language_models()["ids"])},
                {"label", array_of(language_models()["classes"])}});
  const InitReport report = guessed();
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(config(), AllOf(HasSubstr("\"fill(1)\""), HasSubstr("\"fill(0)\"")));
  EXPECT_NEAR(first_loss(), language_models()["losses"]["bert"].get<double>(), 1e-5);
}

// Each position of a BERT sees all others, so the next id is no label for it.
TEST_F(InitLanguageModels, AMaskedModelIsNotTrainedOnTheNextId) {
  take_model("bert_masked");
  write_arrays({{"input_ids", array_of(language_models()["ids"])}});
  const InitReport report = guessed();
  EXPECT_THAT(report.open, Not(IsEmpty()));
  EXPECT_THAT(config(), Not(HasSubstr("\"next\"")));
  EXPECT_THAT(report.text, HasSubstr("the next id is no label for such a model"));
}

TEST_F(InitLanguageModels, AT5ReadsItsLabelsOnePlaceLater) {
  take_model("t5");
  write_arrays({{"input_ids", array_of(language_models()["ids"])},
                {"labels", array_of(language_models()["labels"])}});
  InitReport report = guessed();
  EXPECT_THAT(report.text, HasSubstr("which id does the decoder start with")) << report.text;
  std::filesystem::remove(folder_ / "train.toml");
  std::filesystem::remove(folder_ / "policy.toml");
  write_file(folder_ / "config.json", "{\"decoder_start_token_id\": 0, \"pad_token_id\": 0}");
  report = guessed();
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(config(), HasSubstr("shift_right(start=0, pad=0)"));
  EXPECT_NEAR(first_loss(), language_models()["losses"]["t5"].get<double>(), 1e-5);
}

TEST_F(InitLanguageModels, TokensOfAStreamGetPositionsAsWell) {
  take_model("llama");
  std::filesystem::create_directory(folder_ / "data");
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    const auto id = static_cast<std::uint16_t>(3 + i * 7 % 37);
    bytes.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  write_file(folder_ / "data/train.bin", bytes);
  const InitReport report = guessed();
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(config(),
              AllOf(HasSubstr("\"positions\""), HasSubstr("\"mask\""), HasSubstr("\"targets\"")));
}

InputFacts input_named(const std::string& name, DType dtype = DType::int64) {
  return {name, {dtype, {6}}, {"batch", "6"}, 0};
}

TEST(InitRoles, NamesOfExportersHaveRoles) {
  EXPECT_EQ(role_named("position_ids"), Role::positions);
  EXPECT_EQ(role_named("decoder_attention_mask"), Role::mask);
  EXPECT_EQ(role_named("token_type_ids"), Role::segments);
  EXPECT_EQ(role_named("past_key_values.0.key"), Role::past);
  EXPECT_EQ(role_named("input_ids"), Role::none);
  // Other masks and types have another meaning.
  EXPECT_EQ(role_named("global_attention_mask"), Role::none);
  EXPECT_EQ(role_named("head_mask"), Role::none);
  EXPECT_EQ(role_named("item_types"), Role::none);
  EXPECT_EQ(role_of({"position", {DType::int64, {}}, {"batch"}, 5}), Role::none)
      << "one number a sample is no row of positions";
}

// None of the data belongs to the input, so it gets no array, whatever fits by type and shape.
TEST(InitRoles, AnInputThatNothingFitsIsOpen) {
  DataFacts facts;
  facts.kind = "npz";
  ArrayFacts ids;
  ids.name = "input_ids";
  ids.sample = {DType::int64, {6}};
  ids.rows = 4;
  ids.numbers.add(3);
  facts.arrays = {ids};
  const std::vector<InputFacts> inputs = {input_named("input_ids"),
                                          input_named("global_attention_mask"),
                                          input_named("position_ids", DType::int32)};
  const FieldGuesses fields = guess_fields(inputs, facts);
  EXPECT_EQ(fields.fields[1].from, nullptr);
  EXPECT_THAT(fields.fields[1].todo, HasSubstr("no array fits"));
  EXPECT_THAT(fields.fields[2].as, ::testing::ElementsAre("positions", "int32"));
}

TEST(InitRoles, WhatFillsRowsUpIsNoToken) {
  DataFacts facts;
  facts.kind = "npz";
  ArrayFacts ids;
  ids.name = "input_ids";
  ids.sample = {DType::int64, {6}};
  ids.rows = 4;
  ids.padding = 1;
  ids.numbers.add(3);
  facts.arrays = {ids};
  const FieldGuesses fields =
      guess_fields({input_named("input_ids"), input_named("attention_mask")}, facts);
  EXPECT_THAT(fields.fields[1].as, ::testing::ElementsAre("mask(pad=1)"));
}

TEST(InitRoles, CachesAreBoundToNothing) {
  DataFacts facts;
  facts.kind = "npz";
  ArrayFacts ids;
  ids.name = "input_ids";
  ids.sample = {DType::int64, {6}};
  ids.rows = 4;
  ids.numbers.add(3);
  facts.arrays = {ids};
  const InputFacts past{"past_key_values.0.key",
                        {DType::float32, {2, -1, 8}},
                        {"batch", "2", "past_sequence_length", "8"},
                        0};
  const FieldGuesses fields = guess_fields({input_named("input_ids"), past}, facts);
  EXPECT_TRUE(fields.fields[1].is_left_out);
  EXPECT_EQ(fields.bind.at("past_sequence_length"), 0);
  InputFacts fixed = past;
  fixed.sample.shape[1] = 16;
  EXPECT_THAT(guess_fields({input_named("input_ids"), fixed}, facts).fields[1].todo,
              HasSubstr("text-generation"));
}

}  // namespace
}  // namespace tandem::api
