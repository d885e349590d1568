// Data that was changed after its run was trained: refused on resume, reported in evaluations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/train/checkpoints/checkpoint.h"
#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::error_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Keys = std::vector<std::string>;

class ChangedDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_digits(folder_);
    TrainOptions options;
    options.overrides = {"steps=4"};
    testing::train(folder_, options);
  }

  void resume(Keys keys = {}, bool accepts = false) {
    messages_.clear();
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.resume = true;
    options.accept_changes = accepts;
    options.overrides = {"steps=8"};
    options.overrides.insert(options.overrides.end(), keys.begin(), keys.end());
    options.on_message = [&](const std::string& text) { messages_.push_back(text); };
    Trainer(folder_ / "train.toml", options).run();
  }
  std::string refusal(const Keys& keys = {}) {
    return error_of([&] { resume(keys); });
  }
  std::vector<std::string> warnings(const Keys& data = {}) {
    TrainedOptions options;
    options.data = data;
    return evaluate_run(folder_ / "run", options).warnings;
  }
  /// Keeps only the first `count` images and labels.
  void cut(const std::string& split, std::uint32_t count) {
    const std::string images = read_file(folder_ / (split + "-images")).substr(16, count * 64),
                      labels = read_file(folder_ / (split + "-labels")).substr(8, count);
    testing::write_idx(folder_ / (split + "-images"), {count, 8, 8},
                       {images.begin(), images.end()});
    testing::write_idx(folder_ / (split + "-labels"), {count}, {labels.begin(), labels.end()});
  }

  testing::TemporaryFolder folder_;
  std::vector<std::string> messages_;
};

TEST_F(ChangedDataTest, HalfOfTheTrainingDataIsRefusedUntilItIsAccepted) {
  cut("train", 700);
  EXPECT_THAT(
      refusal(),
      AllOf(HasSubstr("train.toml: data.train: images = train-images: the data has changed since "
                      "step 4 of the run was saved: expected 91988 bytes, sha256 of "),
            HasSubstr(", got 44816 bytes, sha256 of the first and last 64 KiB "),
            HasSubstr("without --resume, or accept the change with --accept-changes")));
  EXPECT_THAT(warnings(), IsEmpty());  // the held-out data is unchanged
  resume({}, true);
  const auto told = HasSubstr("accepted: the data has changed since step 4 of the run was saved: ");
  EXPECT_THAT(messages_, Contains(told));
  const FingerprintPtr saved =
      read_checkpoint(folder_ / "run/checkpoints/step-00000008").position.fingerprint;
  ASSERT_EQ(saved->accepted.size(), 1u);
  EXPECT_THAT(saved->accepted[0].text, told);
  EXPECT_EQ(saved->data.train.back(), (RecordedPart{"samples", "", {"700"}}));
  resume({"steps=9"});
}

TEST_F(ChangedDataTest, OtherBytesOfTheSameSizeAreRefused) {
  const std::string labels = folder_ / "train-labels";
  std::string text = read_file(labels);
  std::swap(text[8], text[9]);
  ASSERT_NE(text, read_file(labels));
  write_file(labels, text);
  EXPECT_THAT(refusal(), HasSubstr("labels = train-labels: the data has changed since step 4 of "
                                   "the run was saved: expected sha256 of the first and last 64 "
                                   "KiB "));
}

TEST_F(ChangedDataTest, FilesInAnotherOrderAreRefused) {
  const std::string key =
      "data.train.files={images=[\"train-images\",\"test-images\"], "
      "labels=[\"train-labels\",\"test-labels\"]}";
  EXPECT_THAT(refusal({key}),
              HasSubstr("data.train: images = test-images: the data has changed since step 4 of "
                        "the run was saved: expected labels = train-labels, got images = "
                        "test-images"));
}

TEST_F(ChangedDataTest, MovedDataIsTheSame) {
  fs::create_directories(folder_ / "elsewhere");
  for (const char* file : {"train-images", "train-labels", "test-images", "test-labels"})
    fs::rename(folder_ / file, folder_ / (std::string("elsewhere/") + file));
  const Keys moved{
      "data.train.files={images=\"elsewhere/train-images\", labels=\"elsewhere/train-labels\"}",
      "data.eval.files={images=\"elsewhere/test-images\", labels=\"elsewhere/test-labels\"}"};
  resume(moved);
  EXPECT_THAT(messages_, Not(Contains(HasSubstr("the data has changed"))));
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(ChangedDataTest, OtherHeldOutDataIsNamedInEvaluations) {
  cut("test", 100);
  EXPECT_THAT(warnings(),
              ElementsAre(HasSubstr(
                  "the held-out data has changed since step 4 of the run was saved: data.eval: "
                  "images = test-images: 23060 bytes, sha256 of ")));
  EXPECT_THAT(
      warnings({"images=" + (folder_ / "test-images"), "labels=" + (folder_ / "test-labels")}),
      IsEmpty());
  EXPECT_THAT(refusal(), HasSubstr("data.eval: images = test-images: the data has changed"));
}

// The held-out data is a part of the training data.
TEST_F(ChangedDataTest, AnEvaluationOnAPartOfOtherTrainingDataIsNamed) {
  TrainOptions options;
  options.run_dir = folder_ / "part";
  options.overrides = {"steps=2", "data.eval={fraction=0.25}"};
  Trainer(folder_ / "train.toml", options).run();
  EXPECT_THAT(evaluate_run(folder_ / "part", {}).warnings, IsEmpty());
  cut("train", 700);
  EXPECT_THAT(evaluate_run(folder_ / "part", {}).warnings,
              ElementsAre(HasSubstr("data.train: images = train-images: 91988 bytes, ")));
}

}  // namespace
}  // namespace tandem::api
