// A training that starts from an export: `init` uses what the file records of its own training,
// including vocabularies, whatever new rows look like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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
using ::testing::IsEmpty;
using ::testing::Not;

/// A score from two numbers and a word. In training "a" is most frequent, in new rows "c" is.
class InitRecorded : public ::testing::Test {
 protected:
  InitRecorded() {
    write_file(folder_ / "net.onnx", numbers_and_word_model());
    write_file(folder_ / "train.csv", rows({"a", "a", "a", "b", "b", "c"}));
    write_file(folder_ / "train.toml", R"toml(
model = "net.onnx"
batch_size = 8
steps = 2
[loss]
terms = [ { kind = "binary_cross_entropy", logits = "score", labels = "left" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "csv"
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
    options.run_dir = folder_ / "run";
    Trainer(folder_ / "train.toml", options).run();
    export_run(folder_ / "run", folder_ / "trained.onnx");
    write_file(folder_ / "new.csv", rows({"c", "c", "c", "b", "b", "a"}));
  }
  static std::string rows(const std::vector<std::string>& words,
                          const std::string& header = "size,plan,share,gone") {
    std::string text = header + "\n";
    for (int i = 0; i < 60; ++i)
      text += std::to_string(10 + 3 * i) + "," + words[static_cast<std::size_t>(i % 6)] + ",0." +
              std::to_string(100 + 11 * i) + (i % 3 == 0 ? ",yes" : ",no") + "\n";
    return text;
  }
  InitReport guess(const std::string& data) {
    return init(folder_ / "trained.onnx", {.data = folder_ / data, .to = folder_ / "on"});
  }
  std::string text() const { return read_file(folder_ / "on/train.toml"); }
  std::string vocabulary() const { return folder_ / "trained.vocabulary.word.tsv"; }

  TemporaryFolder folder_;
};

TEST_F(InitRecorded, FieldsLossAndMetricsAreThoseOfTheExport) {
  const InitReport report = guess("new.csv");
  EXPECT_THAT(report.open, IsEmpty()) << text();
  EXPECT_THAT(
      text(),
      AllOf(HasSubstr("\"normalize([70, 0.5], [40, 0.3])\""),
            HasSubstr("\"vocabulary(file='../trained.vocabulary.word.tsv')\""),
            HasSubstr("left = { from = \"gone\", as = [ \"classes('no', 'yes')\", \"float32\" ]"),
            HasSubstr("labels = \"left\""), HasSubstr("metrics = [ \"log_loss\", \"accuracy\" ]"),
            HasSubstr("best = \"log_loss\"")));
  EXPECT_THAT(report.text, HasSubstr("those that trained.onnx records of its training"));
}

// Words keep their rows, and the next export records that in its own file.
TEST_F(InitRecorded, WordsKeepTheirNumbersThroughTheNextTraining) {
  guess("new.csv");
  TrainOptions options;
  options.run_dir = folder_ / "next";
  options.overrides = {"steps=2"};
  Trainer(folder_ / "on/train.toml", options).run();
  EXPECT_EQ(read_file(folder_ / "next/vocabulary.word.tsv"), read_file(vocabulary()));
  export_run(folder_ / "next", folder_ / "next.onnx");
  std::filesystem::remove(vocabulary());
  PredictOptions predict;
  predict.data = {folder_ / "new.csv"};
  predict.to = folder_ / "scores.tsv";
  predict_run(folder_ / "next.onnx", predict);
  EXPECT_THAT(read_file(folder_ / "next.onnx"), Not(HasSubstr(folder_.path())));
}

TEST_F(InitRecorded, TrainTakesTheSameInMemory) {
  TrainOptions options;
  options.run_dir = folder_ / "next";
  options.overrides = {"steps=2", "data=" + (folder_ / "new.csv")};
  Trainer(folder_ / "trained.onnx", options).run();
  EXPECT_EQ(read_file(folder_ / "next/vocabulary.word.tsv"), read_file(vocabulary()));
}

// "d" has no number: it is reported, and looks up row 0.
TEST_F(InitRecorded, WordsThatTheVocabularyLacksAreTold) {
  write_file(folder_ / "new.csv", rows({"c", "c", "d", "b", "b", "a"}));
  guess("new.csv");
  std::string heard;
  TrainOptions options;
  options.run_dir = folder_ / "next";
  options.overrides = {"steps=2"};
  options.on_message = [&](const std::string& message) { heard += message + "\n"; };
  Trainer(folder_ / "on/train.toml", options).run();
  EXPECT_THAT(heard, AllOf(HasSubstr("10 of 60 values of `plan` are not in "),
                           HasSubstr("trained.vocabulary.word.tsv; they share row 0")));
}

TEST_F(InitRecorded, AColumnThatTheDataLacksIsNamed) {
  write_file(folder_ / "new.csv", rows({"c", "c", "c", "b", "b", "a"}, "size,plans,share,gone"));
  const InitReport report = guess("new.csv");
  ASSERT_EQ(report.open.size(), 1u) << text();
  EXPECT_EQ(report.open[0].path, "data.fields.word");
  EXPECT_THAT(report.open[0].message,
              AllOf(HasSubstr("trained.onnx makes it of \"plan\""), HasSubstr("plans"),
                    HasSubstr("which the data does not have")));
}

TEST_F(InitRecorded, AVocabularyThatIsNotThereIsAskedFor) {
  write_file(vocabulary(), read_file(vocabulary()) + "plan\td\t1\n");
  EXPECT_THAT(guess("new.csv").text,
              AllOf(HasSubstr("TODO       data.fields.word: trained.vocabulary.word.tsv is not the "
                              "vocabulary that the model was trained with"),
                    Not(HasSubstr("TODO       data.fields.numbers"))));
  std::filesystem::remove(vocabulary());
  std::filesystem::remove_all(folder_ / "on");
  EXPECT_THAT(guess("new.csv").text, HasSubstr("is not in the folder of the model"));
}

TEST_F(InitRecorded, AVocabularysFileIsReadAndRefused) {
  const auto error_with = [&](const std::string& function) {
    TrainOptions options;
    options.dry_run = true;
    options.overrides = {"data.fields.word={ from = \"plan\", as = [ \"" + function + "\" ] }"};
    return tandem::testing::error_of(
        [&] { Trainer(folder_ / "train.toml", options); },
        function.find("min_count") == std::string::npos ? ErrorKind::data : ErrorKind::usage);
  };
  EXPECT_THAT(error_with("vocabulary(file='none.tsv')"),
              AllOf(HasSubstr("none.tsv"), HasSubstr("no such file")));
  EXPECT_THAT(error_with("vocabulary(file='train.csv')"), HasSubstr("not a vocabulary"));
  EXPECT_THAT(error_with("vocabulary(file='trained.vocabulary.word.tsv', min_count=2)"),
              HasSubstr("`min_count` counts values"));
}

}  // namespace
}  // namespace tandem::api
