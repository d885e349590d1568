// The configurations that `init` makes for columns of texts with language models, in training,
// evaluation and exports. Losses are those of transformers (tests/scripts/language_models.py). What
// the configurations are: tests/expected/commands/init_texts.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/program/data.h"
#include "api/program/init.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

const std::string& fixtures() {
  static const std::string folder = source_folder() + "/tests/data/language_models/";
  return folder;
}

/// "w3" to "w39" are the ids 3 to 39; 0 is padding.
std::string word_tokenizer() {
  Json words{{"[PAD]", 0}, {"[UNK]", 1}};
  for (int id = 2; id < 40; ++id) words["w" + std::to_string(id)] = id;
  return Json{{"version", "1.0"},
              {"added_tokens", Json::array()},
              {"normalizer", nullptr},
              {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
              {"post_processor", nullptr},
              {"model", {{"type", "WordLevel"}, {"unk_token", "[UNK]"}, {"vocab", words}}}}
      .dump();
}

std::string text_of(const Json& ids) {
  std::string text;
  for (const Json& id : ids) {
    if (id.get<int>() >= 0) text += (text.empty() ? "w" : " w") + std::to_string(id.get<int>());
  }
  return text;
}

/// A text of `count` words, which differ between texts.
std::string words(int count, int first) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i > 0 ? " w" : "w") + std::to_string(3 + (first * 5 + i * (1 + first % 7)) % 37);
  return text;
}

class InitTexts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tandem::testing::lacks_text_libraries()) GTEST_SKIP() << "no PCRE2 or utf8proc";
    fs::create_directory(folder_ / "data");
    put("tokenizer.json", word_tokenizer());
  }
  void put(const std::string& name, const std::string& text) const {
    write_file(folder_ / name, text);
  }
  void take_model(const std::string& name) const {
    fs::copy_file(fixtures() + name + ".onnx", folder_ / "model.onnx");
  }
  /// Writes twelve rows of texts in these columns, from `least` to `most` words long.
  void put_texts(const std::vector<std::string>& columns, int least, int most) const {
    std::string lines;
    for (int row = 0; row < 12; ++row) {
      Json object;
      int shift = 0;
      for (const std::string& column : columns)
        object[column] = column == "label"
                             ? Json(row % 3)
                             : Json(words(row == 0 ? most : least, row + 13 * shift++));
      lines += object.dump() + "\n";
    }
    put("data/train.jsonl", lines);
  }
  InitReport guessed(const std::string& file = "data") const {
    for (const char* name : {"train.toml", "policy.toml"}) fs::remove(folder_ / name);
    return init(folder_ / "model.onnx", {.data = folder_ / file, .to = folder_.path()});
  }
  std::string config() const { return read_file(folder_ / "train.toml"); }
  std::vector<std::string> open_keys(const InitReport& report) const {
    std::vector<std::string> keys;
    for (const Diagnostic& todo : report.open) keys.push_back(todo.path);
    return keys;
  }

  TemporaryFolder folder_;
};

TEST_F(InitTexts, AT5LearnsTheTextThatItWrites) {
  take_model("t5");
  put("config.json", "{\"decoder_start_token_id\": 0, \"pad_token_id\": 0}");
  const Json all = Json::parse(read_file(fixtures() + "losses.json"));
  std::string lines;
  for (std::size_t row = 0; row < 8; ++row)
    lines +=
        Json{{"source", text_of(all["ids"][row])}, {"target", text_of(all["labels"][row])}}.dump() +
        "\n";
  put("data/train.jsonl", lines);
  const InitReport report = guessed();
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(report.text, AllOf(Not(HasSubstr("a language model")), HasSubstr("ignore_index")));
  EXPECT_THAT(
      config(),
      AllOf(HasSubstr("labels = { from = \"target\", as = [ \"tokens(length=8, pad=0)\" ] }"),
            HasSubstr("input_ids = { from = \"source\""), HasSubstr("shift_right")));
  TrainOptions options;
  options.run_dir = folder_ / "run";
  options.overrides = {"batch_size=8", "epochs=1", "optimizer={ kind = \"sgd\", lr = 1e-9 }",
                       "data.train.shuffle=\"none\""};
  EXPECT_NEAR(Trainer(folder_ / "train.toml", options).run().loss,
              all["losses"]["t5"].get<double>(), 1e-5);
}

TEST_F(InitTexts, AMissingTokenizerIsAskedForOnce) {
  fs::remove(folder_ / "tokenizer.json");
  take_model("llama");
  put_texts({"text"}, 3, 9);
  const InitReport report = guessed();
  EXPECT_THAT(open_keys(report), ::testing::ElementsAre("data.tokenizer")) << report.text;
  EXPECT_THAT(report.text, HasSubstr("put the model's tokenizer.json next to it"));
}

TEST_F(InitTexts, AFolderThatIsNotThereIsMade) {
  take_model("llama");
  put_texts({"text"}, 3, 9);
  init(folder_ / "model.onnx", {.data = folder_ / "data", .to = folder_ / "new/folder"});
  EXPECT_TRUE(path_exists(folder_ / "new/folder/train.toml"));
}

// The file keeps its own tokenizer, lengths and fields.
TEST_F(InitTexts, AnExportIsEvaluatedOnOtherTexts) {
  take_model("llama");
  put_texts({"text"}, 3, 12);
  guessed();
  TrainOptions options;
  options.run_dir = folder_ / "run";
  options.overrides = {"steps=2"};
  Trainer(folder_ / "train.toml", options).run();
  fs::create_directory(folder_ / "out");
  export_run(folder_ / "run", folder_ / "out/merged.onnx");
  ASSERT_TRUE(path_exists(folder_ / "out/merged.tokenizer.json"));
  fs::create_directory(folder_ / "new");
  put("new/short.jsonl", "{\"text\": \"w3 w4 w5\"}\n{\"text\": \"w6 w7\"}\n");
  TrainedOptions use;
  use.data = {folder_ / "new/short.jsonl"};
  const Json bare = Json::parse(evaluate_run(folder_ / "out/merged.onnx", use).json);
  use.config = folder_ / "train.toml";
  const Json configured = Json::parse(evaluate_run(folder_ / "out/merged.onnx", use).json);
  EXPECT_EQ(bare["metrics"], configured["metrics"]);
  const InitReport report = init(folder_ / "out/merged.onnx",
                                 {.data = folder_ / "new/short.jsonl", .to = folder_ / "new"});
  EXPECT_THAT(report.open, IsEmpty()) << report.text;
  EXPECT_THAT(read_file(folder_ / "new/train.toml"), HasSubstr("merged.tokenizer.json"));
}

TEST_F(InitTexts, ThePlacesOfTokensAreNoIds) {
  take_model("llama");
  put_texts({"text"}, 3, 9);
  guessed();
  ASSERT_THAT(config(), HasSubstr("\"positions\" ] }"));
  const Json checked = Json::parse(data_check(folder_ / "train.toml").report.json);
  for (const Json& field : checked["train"]["fields"]) {
    const bool is_places = field["name"] == "position_ids";
    EXPECT_EQ(field["columns"][0].contains("greatest"), !is_places) << field;
  }
}

// Windows and rows of a table have equal ids, since the tokenizer is the same.
TEST_F(InitTexts, AnExportOfWindowsIsEvaluatedOnRows) {
  take_model("llama");
  std::string text;
  for (int line = 0; line < 900; ++line) text += words(10, line) + "\n";
  put("corpus.txt", text);
  guessed("corpus.txt");
  TrainOptions options;
  options.run_dir = folder_ / "run";
  options.overrides = {"steps=2"};
  Trainer(folder_ / "train.toml", options).run();
  export_run(folder_ / "run", folder_ / "trained.onnx");
  put_texts({"text"}, 3, 12);
  TrainedOptions use;
  use.data = {folder_ / "data/train.jsonl"};
  const Json rows = Json::parse(evaluate_run(folder_ / "trained.onnx", use).json);
  EXPECT_EQ(rows["samples"], 12);
  EXPECT_GT(rows["metrics"]["loss"].get<double>(), 0);
}

TEST_F(InitTexts, SamplesBeyondThePositionsAreTold) {
  take_model("llama");
  std::string text;
  for (int line = 0; line < 900; ++line) text += words(10, line) + "\n";
  put("corpus.txt", text);
  guessed("corpus.txt");
  const auto summary = [&] { return Trainer(folder_ / "train.toml", {}).summary(); };
  EXPECT_THAT(summary(), Not(HasSubstr("has positions for")));
  put("config.json", "{\"max_position_embeddings\": 256}");
  EXPECT_THAT(summary(), Not(HasSubstr("has positions for")));
  put("config.json", "{\"max_position_embeddings\": 100}");
  EXPECT_THAT(summary(), HasSubstr("samples have 256 tokens, and the model has positions for 100"));
}

// PEFT's readers and AutoTokenizer search the folder.
TEST_F(InitTexts, TheTokenizerLiesWithTheAdapter) {
  take_model("llama");
  put_texts({"text"}, 3, 12);
  guessed();
  std::vector<std::string> said;
  TrainOptions options;
  options.run_dir = folder_ / "run";
  options.on_message = [&](const std::string& line) { said.push_back(line); };
  options.overrides = {"steps=2", "parameters.lora=[{at='**.q_proj:weight', rank=2}]"};
  Trainer trainer(folder_ / "train.toml", options);
  EXPECT_THAT(trainer.summary(),  // q_proj is 16 to 16
              AllOf(HasSubstr(", 64 of them train)"), HasSubstr("means 1 parameter by what")));
  trainer.run();
  EXPECT_THAT(said, Contains(HasSubstr("--format peft")));
  export_run(folder_ / "run", folder_ / "adapter",
             {.checkpoint = "latest", .adapters = {.format = "peft"}});
  EXPECT_EQ(read_file(folder_ / "adapter/tokenizer.json"), word_tokenizer());
  EXPECT_FALSE(path_exists(folder_ / "adapter.tokenizer.json"));
}

}  // namespace
}  // namespace tandem::api
