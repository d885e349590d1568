// The export of a run on a table: with only this file, eval and predict read new files as the run
// does, whatever these look like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tests/api/error_of.h"
#include "tests/api/numbers_and_word.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// Scores from two numbers and one of the words a, b and c; NA and n/a are no words. Semicolons
/// separate cells, commas are decimal points.
class RecordedTable : public ::testing::Test {
 protected:
  RecordedTable() {
    write_file(folder_ / "net.onnx", numbers_and_word_model());
    write_file(folder_ / "train.csv", rows(64, true));
    write_file(folder_ / "train.toml", R"toml(
model = "net.onnx"
batch_size = 8
steps = 4
[loss]
terms = [ { kind = "binary_cross_entropy", logits = "score", labels = "left" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "csv"
decimal = ","
missing = [ "NA", "n/a" ]
train.files = [ "train.csv" ]
eval.files = [ "train.csv" ]
[data.fields]
numbers = { from = [ "size", "share" ], as = [ "missing([70, 0.5])", "normalize([70, 0.5], [40, 0.3])" ] }
word = { from = "plan", as = [ "vocabulary" ] }
left = { from = "gone", as = [ "classes('no', 'yes')", "float32" ] }
[eval]
metrics = [ "log_loss", "accuracy" ]
)toml");
    TrainOptions options;
    options.run_dir = run_;
    Trainer(folder_ / "train.toml", options).run();
    export_run(run_, exported_);
  }
  /// `are_whole`: whether all shares are whole numbers.
  static std::string rows(int count, bool has_label, char separator = ';', bool are_whole = false) {
    const std::vector<std::string> words = {"a", "b", "c", "NA", "a", "n/a", "", "b"};
    std::string text = has_label ? "size;plan;share;gone\n" : "size;plan;share\n";
    for (int i = 0; i < count; ++i) {
      text += std::to_string(10 + 3 * i) + (i % 2 == 0 ? ",5" : "") + ";" +
              words[static_cast<std::size_t>(i % 8)] + ";" +
              (are_whole ? "2" : "0," + std::to_string(100 + 11 * i % 900)) +
              (has_label ? (i % 3 == 0 ? ";yes" : ";no") : "") + "\n";
    }
    for (char& c : text) c = c == ';' ? separator : c;
    return text;
  }
  std::string predicted(const std::string& what, const std::string& data,
                        PredictOptions options = {}) {
    options.data = {data};
    options.to = folder_ / "predicted.tsv";
    predict_run(what, options);
    return read_file(options.to);
  }
  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", exported_ = folder_ / "trained.onnx";
};

// For any new file: fractions in only one column, few rows.
TEST_F(RecordedTable, CellsAreReadAsInTraining) {
  for (const bool are_whole : {false, true}) {
    write_file(folder_ / "new.csv", rows(16, false, ';', are_whole));
    EXPECT_EQ(predicted(exported_, folder_ / "new.csv"), predicted(run_, folder_ / "new.csv"));
  }
  // Without a record, "1,234" next to whole numbers would be a thousand.
  write_file(folder_ / "few.csv", "size;plan;share\n70;a;1,234\n80;b;2,345\n");
  EXPECT_EQ(predicted(exported_, folder_ / "few.csv"), predicted(run_, folder_ / "few.csv"));
}

TEST_F(RecordedTable, TheNameOfTheFileDecidesNothing) {
  write_file(folder_ / "new.csv", rows(9, false));
  write_file(folder_ / "NEW2.CSV", rows(9, false));
  write_file(folder_ / "new.tsv", rows(9, false, '\t'));
  write_file(folder_ / "semicolons.tsv", rows(9, false));
  std::filesystem::create_directory(folder_ / "inside");
  write_file(folder_ / "inside/new.csv", rows(9, false));
  const std::string expected = predicted(run_, folder_ / "new.csv");
  for (const std::string name : {"new.csv", "NEW2.CSV", "new.tsv", "semicolons.tsv", "inside"})
    EXPECT_EQ(predicted(exported_, folder_ / name), expected) << name;
}

TEST_F(RecordedTable, DataOfAnotherKindIsRefused) {
  write_file(folder_ / "new.jsonl", "{\"size\": 1, \"plan\": \"a\", \"share\": 0.5}\n");
  EXPECT_THAT(error_of([&] { predicted(exported_, folder_ / "new.jsonl"); }),
              AllOf(HasSubstr("expected csv, got jsonl"), HasSubstr("--config train.toml")));
}

TEST_F(RecordedTable, TheLossIsThatOfTheTraining) {
  // Without labels, and with a column of only two words, which might be labels.
  write_file(folder_ / "new.csv", "size;plan;share\n70,5;a;0,2\n30,5;b;0,9\n10,5;a;0,1\n");
  for (const std::string as : {"", "class", "probability", "values"}) {
    PredictOptions options;
    options.as = as;
    EXPECT_EQ(predicted(exported_, folder_ / "new.csv", options),
              predicted(run_, folder_ / "new.csv", options))
        << as;
  }
  write_file(folder_ / "labelled.csv", rows(24, true));
  TrainedOptions options;
  options.data = {folder_ / "labelled.csv"};
  const Json of_run = Json::parse(evaluate_run(run_, options).json),
             of_export = Json::parse(evaluate_run(exported_, options).json);
  ASSERT_EQ(of_export["metrics"].size(), 3u) << of_export;
  for (const auto& [name, value] : of_run["metrics"].items())
    EXPECT_NEAR(of_export["metrics"][name].get<double>(), value.get<double>(), 1e-6) << name;
}

TEST_F(RecordedTable, TheCommandLineHasTheLastWord) {
  write_file(folder_ / "points.csv", "size;plan;share\n70.5;a;0.2\n30.5;b;0.9\n");
  write_file(folder_ / "commas.csv", "size;plan;share\n70,5;a;0,2\n30,5;b;0,9\n");
  EXPECT_THAT(error_of([&] { predicted(exported_, folder_ / "points.csv"); }, ErrorKind::data),
              HasSubstr("data.decimal = \".\""));
  PredictOptions options;
  options.overrides = {"data.decimal=."};
  EXPECT_EQ(predicted(exported_, folder_ / "points.csv", options),
            predicted(run_, folder_ / "commas.csv"));
}

// A guess about a file is overridden by what the user says.
TEST_F(RecordedTable, ThousandsThatAreGuessedAreNoMarkOfFractions) {
  write_file(folder_ / "train.csv",
             "size,plan,share,gone\n\"1,234\",a,0.5,no\n\"2,345\",b,1,yes\n");
  TrainOptions options;
  options.overrides = {"data=" + (folder_ / "train.csv"), "data.decimal=,", "steps=1"};
  EXPECT_THAT(error_of([&] { Trainer(folder_ / "net.onnx", options); }),
              Not(HasSubstr("same mark")));
}

TEST_F(RecordedTable, MessagesNameTheFileThatIsRead) {
  write_file(folder_ / "other.csv", "size;share;gone\n70,5;0,2;no\n");
  TrainedOptions options;
  options.data = {folder_ / "other.csv"};
  for (const std::string& model : {run_, exported_}) {
    const auto message =
        AllOf(HasSubstr((folder_ / "other.csv") + ":1: the header does not name the column `plan`"),
              Not(HasSubstr("train.csv")), Not(HasSubstr("command line")), Not(HasSubstr("{")));
    EXPECT_THAT(error_of([&] { evaluate_run(model, options); }, ErrorKind::data), message);
    EXPECT_THAT(error_of([&] { predicted(model, folder_ / "other.csv"); }, ErrorKind::data),
                message);
  }
}

// A broken file is reported as for a run, since no configuration could repair it.
TEST_F(RecordedTable, BrokenFilesAreBadDataForAnExportToo) {
  const std::string utf16("\xff\xfes\0i\0z\0e\0\n\0", 12);
  for (const std::string& text :
       {std::string(), std::string("size;plan;share;gone\n"),
        std::string("size;plan;share;gone\n70,5;a;0,2;no\n70,5;a\n"), utf16}) {
    write_file(folder_ / "broken.csv", text);
    for (const std::string& model : {run_, exported_}) {
      TrainedOptions options;
      options.data = {folder_ / "broken.csv"};
      const auto is_short = AllOf(HasSubstr("broken.csv"), Not(HasSubstr("--config")));
      EXPECT_THAT(error_of([&] { evaluate_run(model, options); }, ErrorKind::data), is_short);
      EXPECT_THAT(error_of([&] { predicted(model, folder_ / "broken.csv"); }, ErrorKind::data),
                  is_short);
    }
  }
}

// The training data's mean and deviation of `size` are 70 and 40, from normalize.
TEST_F(RecordedTable, NumbersFarFromThoseOfTheTraining) {
  const auto warnings_of = [&](const std::string& size, int rows) {
    std::string text = "size;plan;share;gone\n";
    for (int i = 0; i < rows; ++i) text += size + (i % 2 == 0 ? ";a;0,2;no\n" : ";b;0,9;yes\n");
    write_file(folder_ / "new.csv", text);
    std::string all;
    for (const std::string& model : {run_, exported_}) {
      TrainedOptions options;
      options.data = {folder_ / "new.csv"};
      const auto of_eval = Json::parse(evaluate_run(model, options).json)["warnings"];
      PredictOptions predicting;
      predicting.data = options.data;
      predicting.to = folder_ / "predicted.tsv";
      EXPECT_EQ(Json::parse(predict_run(model, predicting).json)["warnings"], of_eval);
      all += of_eval.dump();
    }
    return all;
  };
  EXPECT_EQ(warnings_of("270", 30), "[][]");   // 5 deviations
  EXPECT_EQ(warnings_of("7000", 29), "[][]");  // too few rows for a warning
  EXPECT_THAT(warnings_of("7000", 30),
              HasSubstr("the mean of `size` is 7000, which is 173 standard deviations above the "
                        "mean of the training data"));
  EXPECT_THAT(warnings_of("-1000", 30), HasSubstr("26.8 standard deviations below"));
}

TEST_F(RecordedTable, ManyRowsThatAreLeftOutAreAWarning) {
  write_file(folder_ / "new.csv", rows(97, true) + "70,5;a;0,2;maybe\n70.5;a;0,2;no\n");
  TrainedOptions options;
  options.data = {folder_ / "new.csv"};
  options.overrides = {"data.on_bad=skip"};
  const auto warnings = Json::parse(evaluate_run(run_, options).json)["warnings"];
  ASSERT_EQ(warnings.size(), 1u) << warnings;
  EXPECT_THAT(warnings[0].get<std::string>(),
              AllOf(HasSubstr("2 of 99 rows were left out; the first: "), HasSubstr("new.csv:99:4"),
                    HasSubstr("none of the classes")));
}

TEST_F(RecordedTable, AHeaderOfAnotherSeparatorIsToldByTheKey) {
  write_file(folder_ / "new.csv", rows(9, false));
  PredictOptions options;
  options.overrides = {"data.separator=\",\""};
  EXPECT_THAT(error_of([&] { predicted(run_, folder_ / "new.csv", options); }, ErrorKind::data),
              HasSubstr("data.separator = \"auto\" finds it"));
}

TEST_F(RecordedTable, NothingIsSaidOfTrainingAndOfColumnsThatAreRead) {
  write_file(folder_ / "new.csv", rows(9, false));
  std::string told;
  PredictOptions options;
  options.on_message = [&](const std::string& line) { told += line + "\n"; };
  predicted(exported_, folder_ / "new.csv", options);
  EXPECT_THAT(told, AllOf(Not(HasSubstr("nothing reads")), Not(HasSubstr("optimizer"))));
}

}  // namespace
}  // namespace tandem::api
