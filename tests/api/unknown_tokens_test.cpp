// Tokens that the vocabulary of a tokenizer lacks: their share is reported in training, data check,
// eval and predict, for every model of tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::SmallModel;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

/// The words a, b and c are a token each; all others are id 0, which is [UNK].
std::string tokenizer_of(const std::string& kind) {
  const Json words = {{"[UNK]", 0}, {"a", 1}, {"b", 2}, {"c", 3}};
  Json model{{"type", kind}, {"unk_token", "[UNK]"}, {"vocab", words}};
  if (kind == "WordPiece")
    model.update({{"continuing_subword_prefix", "##"}, {"max_input_chars_per_word", 100}});
  if (kind == "BPE") model["merges"] = Json::array();
  if (kind == "Unigram")
    model = {{"type", kind},
             {"unk_id", 0},
             {"vocab", Json::array({{"[UNK]", 0.0}, {"a", -1.0}, {"b", -1.0}, {"c", -1.0}})}};
  return Json{{"version", "1.0"},          {"added_tokens", Json::array()},
              {"normalizer", nullptr},     {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
              {"post_processor", nullptr}, {"model", model}}
      .dump();
}

class UnknownTokens : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    write_file(folder_ / "net.onnx", SmallModel()
                                         .input("ids", {4, 4}, 7)
                                         .weight("table", {4, 2}, 0.1f)
                                         .weight("fc", {8, 2}, 0.1f)
                                         .node("Gather", "lookup", {"table", "ids"}, "rows")
                                         .node("Flatten", "flat", {"rows"}, "row")
                                         .node("MatMul", "fc", {"row", "fc"}, "logits")
                                         .output("logits", {4, 2})
                                         .bytes());
    write_file(folder_ / "tokenizer.json", tokenizer_of(GetParam()));
    put_config();
    write_file(folder_ / "train.csv", rows("a b", "c a b"));
    write_file(folder_ / "eval.csv", rows("a q", "c a x"));
  }
  void put_config(const std::string& more = ", pad=3") {
    write_file(folder_ / "train.toml", R"toml(model = "net.onnx"
batch_size = 4
epochs = 1
loss = { terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "label" } ] }
optimizer = { kind = "sgd", lr = 0.1 }
[data]
kind = "csv"
tokenizer = "tokenizer.json"
train = { files = [ "train.csv" ] }
eval = { files = [ "eval.csv" ] }
[data.fields]
ids = { from = "text", as = [ "tokens(length=4)toml" +
                                           more + R"toml()" ] }
label = { from = "label", as = [ "int64" ] }
)toml");
  }
  /// Eight rows that alternate between the two texts.
  static std::string rows(const std::string& one, const std::string& two, bool with_labels = true) {
    std::string text = with_labels ? "text,label\n" : "text\n";
    for (int i = 0; i < 8; ++i)
      text += (i % 2 == 0 ? one : two) + (with_labels ? "," + std::to_string(i % 2) : "") + "\n";
    return text;
  }
  TrainResult train() {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.on_message = [this](const std::string& line) { said_.push_back(line); };
    return Trainer(folder_ / "train.toml", options).run();
  }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> said_;
};

// 8 of the 20 tokens of "a q" and "c a x", four times each, are q and x.
const auto eight_of_20 = AllOf(HasSubstr("8 of 20 tokens of `text` (40 %, field ids)"),
                               HasSubstr("are not in the vocabulary: \"a q\", \"c a x\""));

TEST_P(UnknownTokens, OfHeldOutDataAreTold) {
  EXPECT_THAT(train().warnings, ElementsAre(eight_of_20));
  EXPECT_THAT(said_, Contains(AllOf(HasSubstr("warning    held-out data"), eight_of_20)));
  const EvaluationReport report = evaluate_run(folder_ / "run", {});
  EXPECT_THAT(report.warnings, ElementsAre(eight_of_20));
  EXPECT_THAT(Json::parse(report.json)["warnings"].dump(), HasSubstr("8 of 20 tokens"));
  TrainedOptions known;
  known.data = {folder_ / "train.csv"};
  EXPECT_THAT(evaluate_run(folder_ / "run", known).warnings, IsEmpty());
  const DataReport check = data_check(folder_ / "train.toml");
  EXPECT_THAT(check.report.text, eight_of_20);
  const Json checked = Json::parse(check.report.json);
  EXPECT_THAT(checked["warnings"].get<std::vector<std::string>>(), ElementsAre(eight_of_20));
  EXPECT_EQ(checked["eval"]["fields"][0]["columns"][0]["unknown"], 8);
  EXPECT_EQ(checked["train"]["fields"][0]["columns"][0]["unknown"], 0);
}

TEST_P(UnknownTokens, OfTextsToPredictAreTold) {
  train();
  write_file(folder_ / "new.csv", rows("a q", "c a x", false));
  PredictOptions options;
  options.data = {folder_ / "new.csv"};
  options.to = folder_ / "p.csv";
  const Report report = predict_run(folder_ / "run", options);
  EXPECT_THAT(report.warnings, ElementsAre(eight_of_20));
  EXPECT_THAT(Json::parse(report.json)["warnings"].dump(), HasSubstr("8 of 20 tokens"));
  options.strict_words = true;
  options.to = folder_ / "q.csv";
  EXPECT_THAT(error_of([&] { predict_run(folder_ / "run", options); }, ErrorKind::data),
              AllOf(HasSubstr("new.csv:2:1"), HasSubstr("in no token of the tokenizer")));
}

// The tokenizer differs from that of the training data, or the language is wrong.
TEST_P(UnknownTokens, OfTheTrainingDataAreTold) {
  write_file(folder_ / "train.csv", rows("x y", "a b c"));
  write_file(folder_ / "eval.csv", rows("a", "b"));
  const auto told = HasSubstr("training data: 8 of 20 tokens of `text` (40 %, field ids)");
  EXPECT_THAT(train().warnings, ElementsAre(told));
  EXPECT_THAT(said_, Contains(AllOf(HasSubstr("warning    "), told)));
  EXPECT_THAT(data_check(folder_ / "train.toml").report.text, told);
}

TEST_P(UnknownTokens, AreNoPadding) {
  put_config(", pad=0");
  write_file(folder_ / "eval.csv", rows("a b", "c"));
  EXPECT_THAT(train().warnings, IsEmpty());
  TrainedOptions strict;
  strict.strict_words = true;
  EXPECT_THAT(evaluate_run(folder_ / "run", strict).warnings, IsEmpty());
}

TEST_P(UnknownTokens, OfRunningTextAreTold) {
  write_file(folder_ / "a.txt", "a b c a b c a b\nc a b c a\n");
  write_file(folder_ / "b.txt", "a q c x b c a q\n");
  write_file(folder_ / "train.toml", R"toml(model = "net.onnx"
batch_size = 2
epochs = 1
loss = { terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "targets" } ] }
optimizer = { kind = "sgd", lr = 0.1 }
[data]
kind = "text"
tokenizer = "tokenizer.json"
documents = "lines"
document_end = 0
length = 4
train = { files = [ "a.txt" ] }
eval = { files = [ "b.txt" ] }
[data.fields]
ids = "tokens"
targets = "targets"
)toml");
  const DataReport check = data_check(folder_ / "train.toml");
  const auto told = HasSubstr("3 of 8 tokens of `the text` (37.5 %, field tokens)");
  EXPECT_THAT(check.report.text, told);
  EXPECT_THAT(Json::parse(check.report.json)["warnings"].get<std::vector<std::string>>(),
              ElementsAre(told));
}

INSTANTIATE_TEST_SUITE_P(Models, UnknownTokens,
                         ::testing::Values("WordLevel", "WordPiece", "BPE", "Unigram"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::api
