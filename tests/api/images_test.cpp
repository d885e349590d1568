// Folders of pictures from `init` to predictions with names of classes, and exports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/program/init.h"
#include "engine/formats/files.h"
#include "engine/formats/images/decoders.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::Ended;
using tandem::testing::error_of;
using tandem::testing::run_program;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

/// LeNet-5 for 28 x 28 grey pixels, and pictures of other sizes in three classes.
class ImageRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*png_problem().what != '\0' || *jpeg_problem().what != '\0')
      GTEST_SKIP() << "this build lacks libjpeg or libpng";
    fs::copy(source_folder() + "/tests/data/parity/lenet5_torchscript.onnx", folder_ / "net.onnx");
    for (const char* name : {"cat", "dog", "fox"}) {
      for (int i = 0; i < 8; ++i) put("data/train/" + std::string(name), i);
      for (int i = 0; i < 2; ++i) put("data/val/" + std::string(name), i);
    }
  }
  /// The damage is after the header, so that only reading the whole picture finds it.
  void damage(const std::string& picture) {
    fs::copy_file(source_folder() + "/tests/data/images/wrong_sum.png", folder_ / picture,
                  fs::copy_options::overwrite_existing);
  }
  void put(const std::string& folder, int number) {
    const char* const pictures[] = {"large.png", "rgb.png", "jpeg_420.jpg", "grey.png"};
    const std::string picture = pictures[number % 4];
    fs::create_directories(folder_ / folder);
    fs::copy(
        source_folder() + "/tests/data/images/" + picture,
        folder_ / (folder + "/" + std::to_string(number) + picture.substr(picture.size() - 4)));
  }
  TrainResult train(bool resume = false) {
    TrainOptions options;
    options.overrides = {"steps=2", "checkpoint.every='2 steps'"};
    options.run_dir = folder_ / "run";
    options.resume = resume;
    return Trainer(folder_ / "train.toml", options).run();
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(ImageRuns, AreGuessedTrainedAndPredictedByName) {
  const InitReport report = init(folder_ / "net.onnx", {.data = folder_ / "data"});
  const std::string text = read_file(folder_ / "train.toml");
  ASSERT_THAT(report.open, IsEmpty()) << text;
  EXPECT_THAT(text,
              AllOf(HasSubstr("kind = \"images\""), HasSubstr("channels = 1"),
                    HasSubstr("resize_short = 32"), HasSubstr("center_crop = 28"),
                    HasSubstr("files = [ \"data/train\" ]"), HasSubstr("files = [ \"data/val\" ]"),
                    HasSubstr("scale(1/255)"), HasSubstr("softmax_cross_entropy")));
  EXPECT_EQ(train().steps, 2u);
  EXPECT_EQ(read_file(folder_ / "run/classes.txt"), "cat\ndog\nfox\n");

  PredictOptions options;
  options.data = {folder_ / "data/val"};
  options.to = folder_ / "p.csv";
  options.as = "class";
  predict_run(folder_ / "run", options);
  // Ten logits, three names: an untrained network may give numbers from 3 on.
  EXPECT_THAT(read_file(folder_ / "p.csv"), MatchesRegex("((cat|dog|fox|[3-9])\n){6}"));
  options.class_names = false;
  predict_run(folder_ / "run", options);
  EXPECT_THAT(read_file(folder_ / "p.csv"), MatchesRegex("([0-9]\n){6}"));
}

TEST_F(ImageRuns, PathsTellPicturesAndFoldersClasses) {
  fs::remove_all(folder_ / "data/val/cat");  // dogs keep their number
  PredictOptions options;
  options.data = {folder_ / "data"};
  options.to = folder_ / "p.csv";
  options.as = "class";
  options.ids = {"path"};
  options.header = true;
  const std::string net = folder_ / "net.onnx";
  predict_run(net, options);
  const std::string val = folder_ / "data/val/";
  EXPECT_THAT(read_file(folder_ / "p.csv"),
              MatchesRegex("path,class\n" + val + "dog/0.png,[0-9]\n" + val + "dog/1.png,[0-9]\n" +
                           val + "fox/0.png,[0-9]\n" + val + "fox/1.png,[0-9]\n"));
  options.ids = {"name"};
  EXPECT_THAT(error_of([&] { predict_run(net, options); }), HasSubstr("identified by their path"));

  TrainedOptions bare, configured;
  bare.data = {folder_ / "data"};
  init(net, {.data = folder_ / "data"});
  configured.config = folder_ / "train.toml";
  const std::string all = evaluate_run(net, bare).text;
  EXPECT_THAT(all, HasSubstr("4 samples"));
  // With the training data given too, as in a configuration.
  const std::string metrics = all.substr(all.find("4 samples"));
  EXPECT_THAT(evaluate_run(net, configured).text, HasSubstr(metrics));
}

TEST_F(ImageRuns, ExportsGoWithTheirClasses) {
  init(folder_ / "net.onnx", {.data = folder_ / "data"});
  train();
  export_run(folder_ / "run", folder_ / "trained.onnx");
  EXPECT_EQ(read_file(folder_ / "trained.classes.txt"), "cat\ndog\nfox\n");
  TrainedOptions options;
  options.config = folder_ / "train.toml";
  EXPECT_THAT(evaluate_run(folder_ / "trained.onnx", options).problems, IsEmpty());
  write_file(folder_ / "trained.classes.txt", "dog\ncat\nfox\n");
  EXPECT_THAT(error_of([&] { evaluate_run(folder_ / "trained.onnx", options); }, ErrorKind::data),
              AllOf(HasSubstr("trained.classes.txt"), HasSubstr("not the classes")));
  // The file also contains its names of classes by itself.
  fs::remove(folder_ / "trained.classes.txt");
  fs::remove_all(folder_ / "data/val/cat");
  PredictOptions predicting;
  predicting.config = folder_ / "train.toml";
  predicting.data = {folder_ / "data/val"};
  predicting.to = folder_ / "p.csv";
  predicting.as = "class";
  predict_run(folder_ / "trained.onnx", predicting);
  EXPECT_THAT(read_file(folder_ / "p.csv"), MatchesRegex("((cat|dog|fox|[3-9])\n){4}"));
  EXPECT_THAT(evaluate_run(folder_ / "trained.onnx", options).problems, IsEmpty());
}

TEST_F(ImageRuns, OtherClassesEndAResumedRun) {
  init(folder_ / "net.onnx", {.data = folder_ / "data"});
  train();
  fs::remove(folder_ / "run/summary.json");
  put("data/train/ant", 0);  // shifts every number by one
  EXPECT_THAT(error_of([&] { train(true); }, ErrorKind::data),
              AllOf(HasSubstr("classes.txt"), HasSubstr("numbers would mean other classes")));
}

TEST_F(ImageRuns, CheckListsAllPicturesAndLabelsThatTrainingRefuses) {
  init(folder_ / "net.onnx", {.data = folder_ / "data"});
  const auto check = [&](const std::string& keys = "") {
    return run_program("data check " + (folder_ / "train.toml") + keys);
  };
  const Ended good = check();
  EXPECT_EQ(good.code, 0);
  EXPECT_THAT(good.text, Not(HasSubstr("problems")));

  damage("data/train/cat/3.png");
  damage("data/val/fox/1.png");
  write_file(folder_ / "data/train/dog/3.png", "");
  const Ended bad = check();
  EXPECT_EQ(bad.code, 4);
  EXPECT_THAT(bad.text,
              AllOf(HasSubstr("train: 22 samples, 2 bad"), HasSubstr("eval: 5 samples, 1 bad"),
                    HasSubstr("train/cat/3.png: a damaged PNG"),
                    HasSubstr("train/dog/3.png: the file is empty"),
                    HasSubstr("val/fox/1.png: a damaged PNG")));
  const Ended skipped = check(" data.on_bad=skip");
  EXPECT_EQ(skipped.code, 0);
  EXPECT_THAT(skipped.text,
              AllOf(HasSubstr("train: 22 samples, 2 bad"), HasSubstr("train/cat/3.png")));

  for (int i = 0; i < 9; ++i) put("data/train/more" + std::to_string(i), 0);
  const Ended labels = check(" data.on_bad=skip");
  EXPECT_EQ(labels.code, 4);
  EXPECT_THAT(labels.text,
              HasSubstr("more7/0.png: data.fields.labels: out of range (and 1 row more): a label "
                        "is not a class of "));
  EXPECT_THAT(labels.text,
              HasSubstr("expected 0 to 9, got 10; all that are out of range: 10 to 11"));
}

// The state before the damaged picture is saved, and the resumed run skips the picture.
TEST_F(ImageRuns, ADamagedPictureIsLeftOutOnResume) {
  init(folder_ / "net.onnx", {.data = folder_ / "data"});
  damage("data/train/fox/7.png");  // the last one
  TrainOptions options;
  options.overrides = {"steps=4", "data.train.shuffle='none'"};
  options.run_dir = folder_ / "run";
  std::string said;
  options.on_message = [&](const std::string& text) { said += text + "\n"; };
  const auto run = [&] { Trainer(folder_ / "train.toml", options).run(); };
  EXPECT_THAT(error_of(run, ErrorKind::data),
              AllOf(HasSubstr("fox/7.png"), HasSubstr("correct the file; data.on_bad = \"skip\"")));
  EXPECT_THAT(said, HasSubstr("--resume continues from there, with --accept-changes if files of "
                              "the data are corrected or left out"));
  options.resume = true;
  options.overrides.push_back("data.on_bad='skip'");
  EXPECT_THAT(error_of(run), HasSubstr("--accept-changes"));
  options.accept_changes = true;
  run();
  EXPECT_THAT(said, HasSubstr("accepted: the data has changed"));
}

}  // namespace
}  // namespace tandem::api
