// What `generate` writes: transformers' greedy texts, from files and from runs, what ends a text,
// and what is refused. tests/scripts/generate_expectations.py makes the texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/program/generate.h"
#include "engine/formats/files.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

using tandem::testing::Ended;
using tandem::testing::error_of;
using tandem::testing::run_program;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Ids = std::vector<std::int64_t>;
using Json = nlohmann::json;

const std::string& models() {
  static const std::string folder = source_folder() + "/tests/data/language_models/";
  return folder;
}

const Json& expected() {
  static const Json all = Json::parse(read_file(source_folder() + "/tests/data/generate.json"));
  return all;
}

/// "w3 w17": each word is a token, whose id is its number.
std::string words(const Ids& ids) {
  std::string text;
  for (const std::int64_t id : ids) text += (text.empty() ? "w" : " w") + std::to_string(id);
  return text;
}

Json tokenizer() {
  Json vocabulary = Json::object();
  for (int id = 0; id < 40; ++id) vocabulary["w" + std::to_string(id)] = id;
  return {{"version", "1.0"},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "w0"}}}};
}

class GenerateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tandem::testing::lacks_text_libraries())
      GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
    write_file(folder_ / "tokenizer.json", tokenizer().dump());
  }

  /// Writes the model of the script: matrices are multiplied, positions come again.
  void make_model(const std::string& name) const {
    const auto scale = expected()["scale"].get<float>();
    const auto positions = expected()["positions"].get<std::int64_t>();
    std::vector<std::string> keys{
        "loss.terms=[{ kind=\"softmax_cross_entropy\", logits=\"logits\", labels=\"labels\" }]",
        "optimizer.kind=sgd", "model.bind={ sequence_length = 8 }"};
    if (name == "gpt2") {
      keys.push_back("parameters.shape=[{ at = \"**.wpe:weight\", rows = " +
                     std::to_string(positions) + " }]");
    }
    const Tensors original =
        Session(models() + name + ".onnx", 1, {keys[0], keys[1], keys[2]}).parameters();
    Session session(models() + name + ".onnx", 1, keys);
    for (const auto& [parameter, value] : session.parameters()) {
      if (value.shape().size() != 2) continue;
      std::vector<float> numbers = original.at(parameter).floats();
      for (float& number : numbers) number *= scale;
      const std::vector<float> rows = numbers;
      const auto elements = static_cast<std::size_t>(value.elements());
      for (std::size_t i = rows.size(); i < elements; ++i) numbers.push_back(rows[i % rows.size()]);
      session.set_parameter(parameter, Tensor::copy_of(value.shape(), numbers));
    }
    session.save(folder_ / "model.onnx");
  }

  static GenerateOptions options() {
    GenerateOptions options;
    for (const Json& prompt : expected()["prompts"]) options.prompts.push_back(words(prompt));
    return options;
  }
  std::vector<Ids> written(const std::string& run, const GenerateOptions& how) const {
    std::vector<Ids> all;
    for (const GeneratedText& text : generate_text(run, how).texts) all.push_back(text.ids);
    return all;
  }
  /// A run of one step that changes nothing, on samples of 16 tokens. `data`: lines of [data].
  std::string run_on(const std::string& data, const std::string& positions) const {
    write_file(folder_ / "train.toml", R"toml(batch_size = 2
steps = 1
[model]
file = "model.onnx"
bind = { sequence_length = 16 }
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels", ignore_index = -100 } ]
[optimizer]
kind = "sgd"
lr = 0.0
[data]
tokenizer = "tokenizer.json"
length = 16
)toml" + data + R"toml(
[data.fields]
input_ids = "tokens"
attention_mask = "mask"
labels = "targets"
position_ids = )toml" + positions + "\n");
    TrainOptions how;
    how.run_dir = folder_ / "run";
    Trainer(folder_ / "train.toml", how).run();
    return how.run_dir;
  }
  std::string run_on_text() const {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "w" + std::to_string(3 + i * 7 % 37) + " ";
    write_file(folder_ / "text.txt", text);
    return run_on("kind = \"text\"\ntrain = { files = \"text.txt\" }",
                  R"({ from = "tokens", as = [ "positions" ] })");
  }
  /// Conversations "w8 QUESTION w39 ANSWER w9".
  std::string run_on_chat() const {
    std::string lines;
    for (int i = 0; i < 4; ++i)
      lines += R"({"prompt": "w5 w6", "completion": "w7 w4"})"
               "\n";
    write_file(folder_ / "chat.jsonl", lines);
    return run_on(R"(kind = "chat"
template = { user = "w8 {content} ", assistant = "w39 {content} w9" }
train = { files = "chat.jsonl" })",
                  "\"positions\"");
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(GenerateTest, GreedyTextsAreThoseOfTransformers) {
  for (const auto& [name, texts] : expected()["texts"].items()) {
    make_model(name);
    EXPECT_EQ(written(folder_ / "model.onnx", options()), texts.get<std::vector<Ids>>()) << name;
  }
}

TEST_F(GenerateTest, ARunWritesLikeItsModel) {
  make_model("gpt2");
  const std::vector<Ids> texts = expected()["texts"]["gpt2"].get<std::vector<Ids>>();
  const std::string run = run_on_text();
  EXPECT_EQ(written(run, options()), texts) << "longer than the windows of the training";
  export_run(run, folder_ / "trained.onnx");
  EXPECT_EQ(written(folder_ / "trained.onnx", options()), texts);
}

// The third prompt of the script is what the template makes of this message; the third token that
// follows is the one behind an answer.
TEST_F(GenerateTest, APromptIsAMessageInTheTemplateOfTheRun) {
  make_model("gpt2");
  const std::string run = run_on_chat();
  const Ids text = expected()["texts"]["gpt2"][2].get<Ids>();
  ASSERT_EQ(text[2], 9);
  GenerateOptions how;
  how.prompts = {"w8 w30 w12 w5"};
  export_run(run, folder_ / "trained.onnx");
  for (const std::string& of : {run, folder_ / "trained.onnx"}) {
    const GenerateReport report = generate_text(of, how);
    EXPECT_EQ(report.texts.at(0).ids, Ids(text.begin(), text.begin() + 3)) << of;
    EXPECT_EQ(report.texts.at(0).ended, "end");
    EXPECT_EQ(Json::parse(report.json)["chat"], true);
  }
  how.prompts = {"w8 w8 w30 w12 w5 w39"};
  how.raw = true;
  EXPECT_EQ(written(run, how), std::vector<Ids>{text});
}

TEST_F(GenerateTest, PiecesMakeUpTheText) {
  make_model("gpt2");
  GenerateOptions how = options();
  std::vector<std::string> pieces(how.prompts.size());
  how.on_text = [&](std::size_t prompt, const std::string& piece) { pieces.at(prompt) += piece; };
  const GenerateReport report = generate_text(folder_ / "model.onnx", how);
  ASSERT_EQ(report.texts.size(), pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(report.texts[i].text, pieces[i]);
    EXPECT_EQ(pieces[i], " " + words(report.texts[i].ids));
    EXPECT_EQ(report.texts[i].ended, "length");
  }
  const Json json = Json::parse(report.json);
  EXPECT_EQ(json["texts"][1]["prompt"], how.prompts[1]);
  EXPECT_EQ(json["texts"][1]["text"], pieces[1]);
  EXPECT_EQ(json["chat"], false);
}

TEST_F(GenerateTest, TheSeedDecidesWhatIsDrawn) {
  make_model("gpt2");
  const std::string model = folder_ / "model.onnx";
  GenerateOptions how = options();
  const std::vector<Ids> greedy = written(model, how);
  how.temperature = 1e-6;
  EXPECT_EQ(written(model, how), greedy);
  how.temperature = 3;
  how.top_k = 1;
  EXPECT_EQ(written(model, how), greedy);
  how.top_k = 0;
  const std::vector<Ids> drawn = written(model, how);
  EXPECT_NE(drawn, greedy);
  EXPECT_EQ(written(model, how), drawn);
  how.seed = 2;
  EXPECT_NE(written(model, how), drawn);
  how.temperature.reset();  // then 1, as top_p draws
  how.top_p = 0.9;
  EXPECT_EQ(Json::parse(generate_text(model, how).json)["temperature"], 1.0);
}

TEST_F(GenerateTest, WhatEndsAText) {
  make_model("gpt2");
  const std::string model = folder_ / "model.onnx";
  GenerateOptions how = options();
  how.prompts.resize(1);  // 13 13 30 0 4 2 …
  const auto text = [&] { return generate_text(model, how).texts.at(0); };
  how.stop_texts = {"w4"};
  EXPECT_EQ(text().text, " w13 w13 w30 w0 ");
  EXPECT_EQ(text().ended, "stop");
  how.stop_texts.clear();
  write_file(folder_ / "config.json", R"({"eos_token_id": [39, 30]})");
  EXPECT_EQ(text().ids, (Ids{13, 13, 30}));
  EXPECT_EQ(text().ended, "end");
  EXPECT_EQ(text().text, " w13 w13") << "without the token that ends it";
  std::filesystem::remove(folder_ / "config.json");
  how.max_tokens = 2;
  EXPECT_EQ(text().ids.size(), 2u);
}

// Its table has 32 rows: the last token is made of 32 others.
TEST_F(GenerateTest, ATableOfPositionsHasAnEnd) {
  GenerateOptions how = options();
  how.tokenizer = folder_ / "tokenizer.json";
  how.prompts.resize(1);
  const GeneratedText text = generate_text(models() + "gpt2.onnx", how).texts.at(0);
  EXPECT_EQ(text.ids.size(), 30u);
  EXPECT_EQ(text.ended, "positions");
  how.prompts = {words(Ids(33, 5))};
  EXPECT_THAT(error_of([&] { generate_text(models() + "gpt2.onnx", how); }),
              HasSubstr("no positions for a prompt of this length: expected 32 tokens"));
}

TEST_F(GenerateTest, TheProgramPrintsTextsAndObjects) {
  make_model("gpt2");
  const std::string text = words(expected()["texts"]["gpt2"][0].get<Ids>());
  const std::string line = "generate " + (folder_ / "model.onnx") + " --prompt 'w3 w17 w9' ";
  const Ended shown = run_program(line + "2>/dev/null");
  EXPECT_EQ(shown.code, 0);
  EXPECT_EQ(shown.text, " " + text + "\n");
  write_file(folder_ / "prompt.txt", "w21\n");
  const Ended two = run_program(line + "--max-tokens 2 --prompt-file " + (folder_ / "prompt.txt") +
                                " 2>/dev/null");
  EXPECT_EQ(two.text, "> w3 w17 w9\n w13 w13\n\n> w21\n w6 w7\n");
  const Ended object = run_program(line + "--stop w30 --json 2>/dev/null");
  EXPECT_EQ(Json::parse(object.text)["texts"][0]["text"], " w13 w13 ");
  EXPECT_EQ(Json::parse(object.text)["texts"][0]["ended"], "stop");
}

TEST_F(GenerateTest, ModelsThatDoNotWriteAreRefused) {
  GenerateOptions how = options();
  how.tokenizer = folder_ / "tokenizer.json";
  how.max_tokens = 8;  // BERT computes its positions, of which there are 32
  const auto refusal = [&](const std::string& name) {
    return error_of([&] { generate_text(models() + name + ".onnx", how); });
  };
  EXPECT_THAT(refusal("bert_masked"), HasSubstr("depend on the tokens after it"));
  EXPECT_THAT(refusal("bert"), AllOf(HasSubstr("no logits of tokens"), HasSubstr("logits [1, 3]")));
  EXPECT_THAT(refusal("t5"), AllOf(HasSubstr("decoder_input_ids"), HasSubstr("encoder reads")));
  how.tokenizer.clear();
  EXPECT_THAT(refusal("llama"), HasSubstr("--tokenizer tokenizer.json"));
  how.tokenizer = folder_ / "tokenizer.json";
  how.top_p = 0;
  EXPECT_THAT(refusal("llama"), HasSubstr("--top-p: out of range"));
}

}  // namespace
}  // namespace tandem::api
