// Words that training lacks, where a trained model is used: warnings in text and JSON of eval,
// predict and data check, and refusals; and a table with semicolons as separators, from init on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/init.h"
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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* words_config = R"toml(model = "net.onnx"
batch_size = 4
epochs = 30
loss = { terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ] }
optimizer = { kind = "adam", lr = 0.2 }
eval = { metrics = [ "accuracy" ] }
[data]
kind = "csv"
train = { files = [ "train.csv" ] }
eval = { files = [ "eval.csv" ] }
[data.fields]
ids = { from = "color", as = [ "vocabulary" ] }
labels = { from = "label", as = [ "int64" ] }
)toml";

/// Each color has a label of its own; `color` formats a number.
template <class Color>
std::string rows(const Color& color, bool with_labels = true) {
  std::string text = with_labels ? "color,label\n" : "color\n";
  for (int i = 0; i < 16; ++i) {
    text += color(i % 4);
    text += with_labels ? "," + std::to_string(i % 2) + "\n" : "\n";
  }
  return text;
}
std::string whole(int i) { return std::to_string(i); }
std::string with_point(int i) { return std::to_string(i) + ".0"; }
std::string with_blank(int i) { return std::to_string(i) + " "; }

class UnknownWordsInUse : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(folder_ / "net.onnx", std::ios::binary)
        << SmallModel()
               .input("ids", {4}, 7)
               .weight("table", {5, 2}, 0.1f)
               .node("Gather", "lookup", {"table", "ids"}, "logits")
               .output("logits", {4, 2})
               .bytes();
    write_file(folder_ / "train.toml", words_config);
    write_file(folder_ / "train.csv", rows(whole));
    write_file(folder_ / "eval.csv", rows(with_point));
    write_file(folder_ / "blank.csv", rows(with_blank, false));
  }
  void train() {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.on_message = [this](const std::string& line) { said_.push_back(line); };
    result_ = Trainer(folder_ / "train.toml", options).run();
  }
  EvaluationReport evaluated(const std::string& file, bool strict = false) {
    TrainedOptions options;
    if (!file.empty()) options.data = {folder_ / file};
    options.strict_words = strict;
    return evaluate_run(folder_ / "run", options);
  }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> said_;
  TrainResult result_;
};

TEST_F(UnknownWordsInUse, AreWarnedOf) {
  train();
  const auto all = AllOf(HasSubstr("16 of 16 values of `color`"), HasSubstr("(known is \"0\")"));
  EXPECT_THAT(said_, Contains(AllOf(HasSubstr("warning"), all)));
  EXPECT_THAT(result_.warnings, Contains(all));
  for (const std::string file : {"", "eval.csv"}) {
    const EvaluationReport report = evaluated(file);
    EXPECT_THAT(report.warnings, Contains(all));
    const Json json = Json::parse(report.json);
    EXPECT_THAT(json["warnings"].get<std::vector<std::string>>(), Contains(all));
  }
  const EvaluationReport known = evaluated("train.csv");
  EXPECT_THAT(known.warnings, IsEmpty());
  EXPECT_EQ(Json::parse(known.json)["metrics"]["accuracy"], 1);
  const DataReport check = data_check(folder_ / "train.toml");
  EXPECT_THAT(check.report.text, all);
  const Json checked = Json::parse(check.report.json);
  EXPECT_THAT(checked["warnings"].get<std::vector<std::string>>(), Contains(all));
  EXPECT_EQ(checked["eval"]["fields"][0]["columns"][0]["unknown"], 16);
}

TEST_F(UnknownWordsInUse, AreWarnedOfInPredictions) {
  train();
  PredictOptions options;
  options.data = {folder_ / "blank.csv"};
  options.to = folder_ / "p.tsv";
  const Report report = predict_run(folder_ / "run", options);
  EXPECT_THAT(report.warnings, Contains(AllOf(HasSubstr("16 of 16 values of `color`"),
                                              HasSubstr("\"0 \" (known is \"0\")"))));
  EXPECT_THAT(Json::parse(report.json)["warnings"].dump(), HasSubstr("16 of 16"));
  options.strict_words = true;
  options.to = folder_ / "q.tsv";
  EXPECT_THAT(error_of([&] { predict_run(folder_ / "run", options); }, ErrorKind::data),
              AllOf(HasSubstr("blank.csv:2:1"), HasSubstr("not in the vocabulary"),
                    HasSubstr("did you mean \"0\"?")));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "q.tsv"));
}

TEST_F(UnknownWordsInUse, AreRefusedWhereThatIsAsked) {
  train();
  EXPECT_THAT(error_of([&] { evaluated("eval.csv", true); }, ErrorKind::data),
              AllOf(HasSubstr("eval.csv:2:1"), HasSubstr("not in the vocabulary"),
                    HasSubstr("did you mean \"0\"?"), HasSubstr("--strict-words")));
  EXPECT_THAT(evaluated("train.csv", true).warnings, IsEmpty());
}

// Equal numbers written with other separators: init, training and its losses must be equal.
TEST(SeparatedTables, TrainAlikeFromInitOn) {
  const auto losses = [](const std::string& separator, const std::string& point,
                         std::string* written) {
    const tandem::testing::TemporaryFolder folder;
    std::ofstream(folder / "net.onnx", std::ios::binary)
        << SmallModel()
               .input("x", {8, 3})
               .weight("w", {3, 1}, 0.1f)
               .node("MatMul", "fc", {"x", "w"}, "out")
               .output("out", {8, 1})
               .bytes();
    std::filesystem::create_directories(folder / "data");
    std::string text = separator + "a" + separator + "b" + separator + "c" + separator + "y\n";
    for (int i = 0; i < 64; ++i) {
      text += std::to_string(i);
      for (const int quarter : {i % 5 - 2, i % 7 - 3, i % 3 - 1, i % 5 + i % 3 - 3}) {
        const std::string sign = quarter < 0 ? "-" : "";
        text += separator + sign + std::to_string(std::abs(quarter) / 4) + point +
                (std::abs(quarter) % 4 == 0 ? "0" : std::to_string(25 * (std::abs(quarter) % 4)));
      }
      text += "\n";
    }
    write_file(folder / "data/rows.csv", text);
    const InitReport report = init(folder / "net.onnx", {.data = folder / "data"});
    EXPECT_THAT(report.open, IsEmpty()) << report.text;
    *written = read_file(folder / "train.toml");
    TrainOptions options;
    options.overrides = {"steps=6", "log.every='1 steps'"};
    options.run_dir = folder / "run";
    Trainer(folder / "train.toml", options).run();
    std::vector<double> result;
    std::istringstream lines(read_file(folder / "run/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line)["loss"]);
    return result;
  };
  std::string commas, semicolons, tabs, bars;
  const std::vector<double> wanted = losses(",", ".", &commas);
  EXPECT_GE(wanted.size(), 6u);
  EXPECT_EQ(losses(";", ",", &semicolons), wanted);
  EXPECT_EQ(losses("\t", ".", &tabs), wanted);
  EXPECT_EQ(losses("|", ",", &bars), wanted);
  for (const std::string& config : {commas, semicolons, tabs, bars})
    EXPECT_THAT(config, Not(HasSubstr("separator ="))) << "each file's own rows show it";
  EXPECT_THAT(semicolons, HasSubstr("decimal = \",\""));
}

}  // namespace
}  // namespace tandem::api
