// Inputs that would silently give wrong results: invalid labels, ids of another vocabulary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The text of the error, which must be one of bad data.
std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    return error.what();
  }
  return "no error";
}

class TrainedChecksTest : public ::testing::Test {
 protected:
  TrainedChecksTest() {
    write_clicks(folder_);
    testing::train(folder_);
  }

  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", model_ = folder_ / "out.onnx";
};

TEST_F(TrainedChecksTest, BinaryLabelsAreFromZeroToOne) {
  std::vector<std::string> rows = lines_of(read_file(folder_ / "eval.tsv"));
  rows[3] = "2\t" + without_label(rows[3]);
  rows[8] = "-1\t" + without_label(rows[8]);
  PredictOptions options;
  options.data = {folder_ / "bad.tsv"};
  write_file(options.data[0], joined(rows));
  EXPECT_THAT(
      refusal_of([&] { evaluate_run(run_, options); }),
      HasSubstr(
          "bad.tsv:4: data.fields.label: out of range (and 1 row more): a label of the loss "
          "term \"click\" (binary_cross_entropy): expected 0 to 1, got 2; all that are out of "
          "range: -1 to 2 (labels are"));
  options.to = folder_ / "predicted.tsv";
  predict_run(run_, options);  // needs no label
  EXPECT_THAT(lines_of(read_file(options.to)), SizeIs(rows.size()));

  rows[3] = "0.5\t" + without_label(rows[3]);  // any value between 0 and 1
  rows[8] = "1\t" + without_label(rows[8]);
  write_file(options.data[0], joined(rows));
  EXPECT_EQ(refusal_of([&] { evaluate_run(run_, options); }), "no error");

  std::vector<std::string> trained = lines_of(read_file(folder_ / "train.tsv"));
  trained[1] = "-1\t" + without_label(trained[1]);
  write_file(folder_ / "train.tsv", joined(trained));
  TrainOptions again;
  again.run_dir = folder_ / "again";
  EXPECT_THAT(refusal_of([&] { Trainer(folder_ / "train.toml", again).run(); }),
              HasSubstr("train.tsv:2: data.fields.label: out of range"));
}

TEST_F(TrainedChecksTest, AnExportKnowsItsVocabularies) {
  export_run(run_, model_, {.checkpoint = "best"});
  const std::string vocabulary = folder_ / "out.vocabulary.ids.tsv", text = read_file(vocabulary);
  std::vector<std::string> words = lines_of(text);
  std::swap(words[3], words[4]);
  write_file(vocabulary, joined(words));
  PredictOptions options;
  options.data = {folder_ / "eval.tsv"};
  options.config = folder_ / "train.toml";
  options.to = folder_ / "predicted.tsv";
  const auto refusal = [&] { return refusal_of([&] { predict_run(model_, options); }); };
  EXPECT_THAT(
      refusal(),
      AllOf(HasSubstr("out.vocabulary.ids.tsv: this is not the vocabulary that the exported "
                      "model was trained with"),
            HasSubstr("take the one that `tandem export` wrote with this model")));
  EXPECT_THAT(refusal_of([&] { evaluate_run(model_, options); }), HasSubstr("the exported model"));
  write_file(vocabulary, text);
  EXPECT_EQ(refusal(), "no error");
  // Every value would be unknown.
  options.overrides = {
      "data.fields.ids.as=[\"missing(-1)\", \"vocabulary(min_count=2, by='value')\"]"};
  EXPECT_THAT(refusal(), AllOf(HasSubstr("out.vocabulary.ids.tsv: line 2: a value of one column"),
                               HasSubstr("expected one that counts by value")));
  options.overrides.clear();

  // For a model that records no vocabularies, only their length is compared.
  std::string bytes = read_file(model_);
  const std::size_t key = bytes.find("tandem.vocabulary.ids.tsv");
  ASSERT_NE(key, std::string::npos);
  write_file(model_, bytes.replace(key, 7, "others."));
  write_file(vocabulary, text.substr(0, text.rfind('\n', text.size() - 2) + 1));
  EXPECT_THAT(refusal(), HasSubstr("which has a row for each word: expected"));
}

TEST_F(TrainedChecksTest, HeldOutLabelsOfOneClassAreRefusedBeforeTraining) {
  std::vector<std::string> rows = lines_of(read_file(folder_ / "eval.tsv"));
  for (std::string& row : rows) row = "0\t" + without_label(row);
  write_file(folder_ / "eval.tsv", joined(rows));
  TrainOptions options;
  options.run_dir = folder_ / "other";
  options.dry_run = true;
  const auto with = [&] { Trainer(folder_ / "train.toml", options).run(); };
  EXPECT_THAT(refusal_of(with),
              AllOf(HasSubstr("eval.metrics: the held-out data has no auc: expected labels of both "
                              "classes, got no label is positive (field label)"),
                    HasSubstr("leave \"auc\" out")));
  TrainedOptions held_out;
  EXPECT_THAT(refusal_of([&] { evaluate_run(run_, held_out); }), HasSubstr("has no auc"));
  options.overrides = {"eval.metrics=[\"log_loss\"]"};
  EXPECT_EQ(refusal_of(with), "no error");
}

TEST_F(TrainedChecksTest, AnotherNumberOfHashedIdsIsRefused) {
  const auto hashed = [](const std::string& functions) {
    return std::vector<std::string>{"data.fields.ids.as=[" + functions + "]",
                                    "parameters.shape=[{at=\"{wide,deep}:weight\", rows=300}]"};
  };
  TrainOptions training;
  training.run_dir = folder_ / "hashed";
  training.overrides = hashed("\"missing(-1)\", \"hash(300)\"");
  const auto train = [&] { Trainer(folder_ / "train.toml", training).run(); };
  train();
  training.resume = true;
  training.overrides = hashed("\"missing(-1)\", \"hash(299)\"");
  const std::string then_and_now = "of this field: ids would mean other rows: expected hash(300), ";
  EXPECT_THAT(error_of(train, ErrorKind::usage),
              AllOf(HasSubstr("data.fields.ids: the run was trained with other functions"),
                    HasSubstr(then_and_now + "got hash(299) (write hash(300), or start a new")));
  training.overrides = hashed("\"missing(-2)\", \"hash(300)\"");
  const std::string other_missing =
      "expected missing('-1'), got missing('-2') (write missing('-1')";
  EXPECT_THAT(error_of(train, ErrorKind::usage), HasSubstr(other_missing));
  training.overrides = hashed("\"missing('-1')\", \"hash( 300 )\"");
  training.overrides.push_back("epochs=2");
  train();

  export_run(folder_ / "hashed", model_, {.checkpoint = "latest"});
  PredictOptions options;
  options.data = {folder_ / "eval.tsv"};
  options.to = folder_ / "predicted.tsv";
  options.overrides = training.overrides;
  options.config = folder_ / "train.toml";
  predict_run(model_, options);
  options.overrides = hashed("\"missing(-1)\", \"hash(299)\"");
  EXPECT_THAT(error_of([&] { predict_run(model_, options); }, ErrorKind::usage),
              AllOf(HasSubstr("data.fields.ids: the exported model was trained with other"),
                    HasSubstr(then_and_now + "got hash(299)")));
  EXPECT_THAT(error_of([&] { evaluate_run(model_, options); }, ErrorKind::usage),
              HasSubstr("got hash(299)"));
  options.overrides = hashed("\"missing(-2)\", \"hash(300)\"");
  EXPECT_THAT(error_of([&] { predict_run(model_, options); }, ErrorKind::usage),
              HasSubstr(other_missing));
  options.overrides = hashed("\"missing(-1)\", \"hash(299)\"");
  PredictOptions of_run = options;
  of_run.config.clear();
  of_run.overrides.pop_back();
  EXPECT_THAT(error_of([&] { predict_run(folder_ / "hashed", of_run); }, ErrorKind::usage),
              HasSubstr("data.fields.ids: the run was trained with other functions"));

  // A model that records no functions.
  std::string bytes = read_file(model_);
  const std::size_t key = bytes.find("tandem.functions.ids");
  ASSERT_NE(key, std::string::npos);
  write_file(model_, bytes.replace(key, 7, "others."));
  predict_run(model_, options);
}

TEST_F(TrainedChecksTest, BrokenCheckpointsAreNamed) {
  const std::string checkpoints = run_ + "/checkpoints/", state = "/state.json";
  const std::string broken = "checkpoint step-00000010 is broken and is not used: " + checkpoints +
                             "step-00000010/state.json: the checkpoint lacks this file";
  std::filesystem::remove(checkpoints + "step-00000010" + state);
  EXPECT_THAT(export_run(run_, folder_ / "weights.npz", {.checkpoint = "latest"}),
              HasSubstr("warning: " + broken));
  TrainedOptions options;
  options.checkpoint = "latest";
  EXPECT_THAT(evaluate_run(run_, options).warnings, Contains(broken));
  PredictOptions predict;
  predict.checkpoint = "latest";
  predict.data = {folder_ / "eval.tsv"};
  predict.to = folder_ / "predicted.tsv";
  EXPECT_THAT(predict_run(run_, predict).warnings, Contains(broken));

  std::filesystem::remove(checkpoints + "step-00000005" + state);
  EXPECT_THAT(
      refusal_of([&] { export_run(run_, folder_ / "weights.npz", {.checkpoint = "latest"}); }),
      AllOf(HasSubstr(broken), HasSubstr("checkpoint step-00000005 is broken")));
}

TEST_F(TrainedChecksTest, AnotherVocabularyIsNotExported) {
  const std::string path = run_ + "/vocabulary.ids.tsv";
  std::vector<std::string> words = lines_of(read_file(path));
  std::swap(words[3], words[4]);
  write_file(path, joined(words));
  EXPECT_THAT(refusal_of([&] { export_run(run_, model_); }),
              HasSubstr("not the vocabulary that the checkpoint was trained with"));
  EXPECT_FALSE(std::filesystem::exists(model_));
}

}  // namespace
}  // namespace tandem::api
