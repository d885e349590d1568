// Folders of pictures from `init` to predictions with names of classes, and exports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/formats/files.h"
#include "engine/formats/images/decoders.h"
#include "tandem/init.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

const std::string source_folder = std::string(TANDEM_SOURCE_DIR) + "/";

/// LeNet-5 of 28 x 28 grey pixels, and pictures of other sizes in three classes.
class ImageRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*png_problem().what != '\0' || *jpeg_problem().what != '\0')
      GTEST_SKIP() << "this build lacks libjpeg or libpng";
    fs::copy(source_folder + "tests/data/parity/lenet5_torchscript.onnx", folder_ / "net.onnx");
    for (const char* name : {"cat", "dog", "fox"}) {
      for (int i = 0; i < 8; ++i) put("data/train/" + std::string(name), i);
      for (int i = 0; i < 2; ++i) put("data/val/" + std::string(name), i);
    }
  }
  void put(const std::string& folder, int number) {
    const char* const pictures[] = {"large.png", "rgb.png", "jpeg_420.jpg", "grey.png"};
    const std::string picture = pictures[number % 4];
    fs::create_directories(folder_ / folder);
    fs::copy(
        source_folder + "tests/data/images/" + picture,
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
  EXPECT_THAT(error_of([&] { predict_run(net, options); }), HasSubstr("told by their path"));

  TrainedOptions bare, configured;
  bare.data = {folder_ / "data"};
  init(net, {.data = folder_ / "data"});
  configured.config = folder_ / "train.toml";
  const std::string all = evaluate_run(net, bare).text;
  EXPECT_THAT(all, HasSubstr("4 samples"));
  // With the training data beside them, as a configuration names it.
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
  // The file knows its words alone, too.
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
  put("data/train/ant", 0);  // every number moves by one
  EXPECT_THAT(error_of([&] { train(true); }, ErrorKind::data),
              AllOf(HasSubstr("classes.txt"), HasSubstr("numbers would mean other classes")));
}

}  // namespace
}  // namespace tandem::api
