// data.kind = "images": folders as torchvision's ImageFolder has them, lists of labels, sizes as
// its Resize and CenterCrop, pictures that cannot be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "engine/data/data_source.h"
#include "engine/data/images/image_rows.h"
#include "engine/formats/files.h"
#include "engine/formats/images/decoders.h"
#include "engine/train/checkpoints/data_fingerprint.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/data/image_expectations.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::bytes_of_digits;
using testing::data_config;
using ::testing::ElementsAre;
using testing::error_of;
using testing::greatest_difference;
using ::testing::HasSubstr;
using testing::image_expectations;
using testing::image_path;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;
using Json = nlohmann::json;

class ImageData : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*jpeg_problem().what != '\0' || *png_problem().what != '\0')
      GTEST_SKIP() << "this build lacks libjpeg or libpng";
  }
  void put(const std::string& path, const std::string& picture = "small.png") {
    const fs::path to(folder_ / path);
    fs::create_directories(to.parent_path());
    fs::copy_file(image_path(picture), to, fs::copy_options::overwrite_existing);
  }
  DataConfig config(const std::string& keys = "", const std::string& fields = "",
                    const std::string& eval = "") {
    return data_config(folder_, "kind = 'images'\n" + keys + "\ntrain = { files = 'train' }\n" +
                                    eval + (fields.empty() ? "" : "[data.fields]\n" + fields));
  }
  DataSets open(const DataConfig& config) {
    OpenOptions options;
    options.on_message = [this](const std::string& text) { said_ += text + "\n"; };
    return open_data(config, options);
  }
  static std::vector<std::uint8_t> pictures(const DataSource& source,
                                            const Augmentation* augmentation = nullptr) {
    const int field = source.find_field("images");
    std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples()));
    std::iota(all.begin(), all.end(), 0);
    const auto each = source.fields()[static_cast<std::size_t>(field)].sample.bytes();
    std::vector<std::uint8_t> pixels(all.size() * each);
    source.fill(field, all, augmentation, pixels.data());
    return pixels;
  }
  static std::vector<std::int64_t> labels(const DataSource& source) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(source.samples())), result(all.size());
    std::iota(all.begin(), all.end(), 0);
    source.fill(source.find_field("labels"), all, nullptr, result.data());
    return result;
  }

  TemporaryFolder folder_;
  std::string said_;
};

TEST_F(ImageData, ClassesAndOrderAreThoseOfImageFolder) {
  const Json& tree = image_expectations().at("folders");
  for (const std::string path : tree.at("paths")) put("train/" + path);
  put("train/.hidden/x.png");
  put("train/a/._x.png", "text.png");
  write_file(folder_ / "train/a/notes.txt", "no picture");
  const DataSets sets = open(config());
  ASSERT_EQ(sets.vocabularies.size(), 1u);
  std::string classes;
  for (const std::string name : tree.at("classes")) classes += name + "\n";
  EXPECT_EQ(sets.vocabularies[0].file_name, "classes.txt");
  EXPECT_EQ(sets.vocabularies[0].text, classes);
  const Json& samples = tree.at("samples");
  ASSERT_EQ(sets.train->samples(), static_cast<std::int64_t>(samples.size()));
  const std::vector<std::int64_t> given = labels(*sets.train);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string path = samples[i][0];
    EXPECT_EQ(sets.train->describe(sets.train->find_field("images"), static_cast<std::int64_t>(i)),
              folder_ / ("train/" + path));
    EXPECT_EQ(given[i], samples[i][1]);
  }
  const DataField& images = sets.train->fields()[0];
  EXPECT_EQ(images.sample, (TensorType{DType::uint8, {3, 12, 16}}));
}

TEST_F(ImageData, SizesAreThoseOfTorchvision) {
  put("train/a/x.png", "large.png");
  for (const Json& expected : image_expectations().at("resized")) {
    std::string keys = expected.at("key");
    for (std::size_t at; (at = keys.find(", center")) != std::string::npos;)
      keys.replace(at, 2, "\n");
    SCOPED_TRACE(keys);
    const DataSets sets = open(config(keys));
    const Shape shape{3, expected.at("height"), expected.at("width")};
    EXPECT_EQ(sets.train->fields()[0].sample.shape, shape);
    const auto pixels = bytes_of_digits(expected.at("pixels"));
    EXPECT_LE(greatest_difference(pictures(*sets.train), pixels), 1);
  }
}

TEST_F(ImageData, GreyIsOneChannel) {
  put("train/a/x.png", "rgb.png");
  const Json& expected = image_expectations().at("files")[0];
  ASSERT_EQ(expected.at("name"), "rgb.png");
  const DataSets sets = open(config("channels = 1"));
  EXPECT_EQ(pictures(*sets.train), bytes_of_digits(expected.at("grey")));
}

TEST_F(ImageData, ListsNameLabels) {
  for (const char* path : {"train/1.png", "train/below/2.png", "train/3.png"}) put(path);
  write_file(folder_ / "train/list.csv",
             "path,label\n3.png,\"cat, wild\"\nbelow/2.png,ant\n1.png,\"cat, wild\"\n");
  const DataSets sets = open(config("labels = 'list.csv'"));
  EXPECT_THAT(labels(*sets.train), ElementsAre(1, 0, 1));
  EXPECT_EQ(sets.train->describe(0, 0), folder_ / "train/3.png");
  EXPECT_EQ(sets.vocabularies.at(0).text, "ant\ncat, wild\n");

  write_file(folder_ / "train/list.csv", "1.png,2\n3.png,0\n");  // numbers are classes
  const DataSets numbered = open(config("labels = 'list.csv'"));
  EXPECT_THAT(labels(*numbered.train), ElementsAre(2, 0));
  EXPECT_EQ(numbered.vocabularies.at(0).text, "0\n1\n2\n");

  write_file(folder_ / "train/list.csv", "1.png,2\n3.png\n");
  EXPECT_THAT(error_of([&] { open(config("labels = 'list.csv'")); }),
              AllOf(HasSubstr("list.csv:2"), HasSubstr("path,label")));
  write_file(folder_ / "train/list.csv", "gone.png,2\n");
  EXPECT_THAT(error_of([&] { open(config("labels = 'list.csv'")); }), HasSubstr("gone.png"));
  EXPECT_THAT(error_of([&] { open(config("labels = 'other.csv'")); }), HasSubstr("other.csv"));
}

// As names they would give the other labels other numbers than those in the list.
TEST_F(ImageData, WholeNumbersThatAreNoClassesAreRefused) {
  for (const char* path : {"train/1.png", "train/2.png", "train/3.png"}) put(path);
  const auto list = [&](const std::string& text) {
    write_file(folder_ / "train/list.csv", text);
    return error_of([&] { open(config("labels = 'list.csv'")); });
  };
  EXPECT_THAT(
      list("3.png,1\n1.png,-1\n2.png,0\n"),
      AllOf(HasSubstr(folder_ / "train/list.csv:2: the label is no class: expected a whole number "
                                "from 0 to 999999, got -1 (labels that are all whole numbers are "
                                "the classes themselves: count them from 0"),
            Not(HasSubstr("list.csv:1"))));
  EXPECT_THAT(list("path,label\n1.png,0\n3.png,1000000\n"),
              AllOf(HasSubstr("list.csv:3: the label is no class"), HasSubstr("got 1000000")));
  std::string many = "1.png,0\n";
  for (int i = 0; i < 60; ++i) many += "2.png,-1\n";
  EXPECT_THAT(list(many), AllOf(HasSubstr("list.csv:2: the label is no class (and 59 lines more)"),
                                HasSubstr("list.csv:51: "), Not(HasSubstr("list.csv:52: "))));
  EXPECT_EQ(list("1.png,-1\n2.png,cat\n3.png,007\n"), "no error");  // names
  EXPECT_EQ(open(config("labels = 'list.csv'")).vocabularies.at(0).text, "-1\n007\ncat\n");
}

TEST_F(ImageData, LabelsKnowWhereTheyStand) {
  for (const char* path : {"train/a/1.png", "train/a/2.png", "train/b/1.png", "val/1.png"})
    put(path);
  put("train/a/2.png", "text.png");
  write_file(folder_ / "train/list.csv", "path,label\na/2.png,0\na/1.png,1\nb/1.png,2\n");
  write_file(folder_ / "val/list.csv", "1.png,2\n");
  const std::string lists = "labels = 'list.csv'\non_bad = 'skip'";
  const DataSets sets = open(config(lists, "", "eval = { files = 'val' }\n"));
  const int field = sets.train->find_field("labels");
  EXPECT_EQ(sets.train->describe(field, 0), folder_ / "train/list.csv:3");  // line 2 is left out
  EXPECT_EQ(sets.eval->describe(sets.eval->find_field("labels"), 0), folder_ / "val/list.csv:1");
  EXPECT_THAT(error_of([&] { sets.train->check_range(field, 2, nullptr); }),
              HasSubstr(folder_ / "train/list.csv:4: data.fields.labels: out of range: expected 0 "
                                  "to 1, got 2"));

  const DataSets folders = open(config("on_bad = 'skip'"));
  EXPECT_EQ(folders.train->describe(folders.train->find_field("labels"), 1),
            folder_ / "train/b/1.png");
  const DataSets alone = open(config("", "labels = 'labels'\n"));  // without the pictures
  EXPECT_EQ(alone.train->describe(0, 1), folder_ / "train/a/2.png");
}

TEST_F(ImageData, HeldOutPicturesHaveTheClassesOfTraining) {
  for (const char* path : {"train/a/1.png", "train/b/1.png", "train/c/1.png", "val/c/1.png"})
    put(path);
  const DataSets sets = open(config("", "", "eval = { files = 'val' }\n"));
  EXPECT_THAT(labels(*sets.eval), ElementsAre(2));
  put("val/d/1.png");
  EXPECT_THAT(error_of([&] { open(config("", "", "eval = { files = 'val' }\n")); }),
              HasSubstr("the training data has no class \"d\""));

  OpenOptions options;
  options.classes = {"c", "d"};  // as a run has them
  DataConfig used = config();
  used.train.files[0].paths = {folder_ / "val"};
  EXPECT_THAT(labels(*open_data(used, options).train), ElementsAre(0, 1));
}

TEST_F(ImageData, WithoutLabelsAllPicturesCount) {
  for (const char* path : {"train/b.png", "train/a/1.png", "train/10.png"}) put(path);
  const DataSets sets = open(config("", "images = 'images'\n"));
  EXPECT_EQ(sets.train->samples(), 3);
  EXPECT_EQ(sets.train->describe(0, 0), folder_ / "train/10.png");
  EXPECT_EQ(sets.train->describe(0, 2), folder_ / "train/a/1.png");
  EXPECT_THAT(sets.vocabularies, IsEmpty());
}

TEST_F(ImageData, FoldersThatAreWrongAreNamed) {
  fs::create_directories(folder_ / "train");
  EXPECT_THAT(error_of([&] { open(config()); }), HasSubstr("there are no sub-folders"));
  fs::create_directories(folder_ / "train/empty");
  put("train/a/1.png");
  EXPECT_THAT(error_of([&] { open(config()); }),
              AllOf(HasSubstr("train/empty"), HasSubstr("no picture of this class")));
  fs::remove(folder_ / "train/empty");
  put("train/a/1.webp");
  EXPECT_THAT(error_of([&] { open(config()); }),
              AllOf(HasSubstr("1.webp"), HasSubstr("JPEG or PNG")));
  fs::remove(folder_ / "train/a/1.webp");
  fs::create_directory_symlink(folder_ / "train", folder_ / "train/a/again");
  EXPECT_THAT(error_of([&] { open(config()); }), HasSubstr("without an end"));
}

TEST_F(ImageData, OtherSizesAreNamed) {
  put("train/a/1.png");
  put("train/a/2.png", "large.png");
  EXPECT_THAT(error_of([&] { open(config()); }),
              AllOf(HasSubstr("a/2.png: the picture has another size"),
                    HasSubstr("expected 12 x 16, got 40 x 30"), HasSubstr("data.resize")));
  EXPECT_THAT(error_of([&] { open(config("center_crop = 14")); }),
              AllOf(HasSubstr("a/1.png"), HasSubstr("smaller than data.center_crop")));
  EXPECT_EQ(open(config("center_crop = 12")).train->fields()[0].sample.shape, (Shape{3, 12, 12}));
}

TEST_F(ImageData, BadPicturesAreErrorsOrLeftOut) {
  put("train/a/1.png");
  put("train/a/2.png", "wrong_sum.png");
  put("train/b/1.png", "text.png");
  put("train/b/2.png", "small.png");
  EXPECT_THAT(error_of([&] { open(config()); }),
              AllOf(HasSubstr("b/1.png"), HasSubstr("on_bad = \"skip\"")));
  const DataSets sets = open(config("on_bad = 'skip'"));
  EXPECT_THAT(labels(*sets.train), ElementsAre(0, 1));
  EXPECT_EQ(sets.train->describe(0, 1), folder_ / "train/b/2.png");
  EXPECT_THAT(said_, AllOf(HasSubstr("2 of 4 pictures were left out"), HasSubstr("a/2.png")));
  EXPECT_THAT(sets.warnings, ElementsAre(HasSubstr("training data: 2 of 4 pictures")));
  for (const char* path : {"train/a/1.png", "train/b/2.png"}) put(path, "text.png");
  EXPECT_THAT(error_of([&] { open(config("on_bad = 'skip'")); }), HasSubstr("neither a JPEG"));
}

TEST_F(ImageData, WhoAsksHearsOfAllPicturesThatCannotBeOpened) {
  for (const char* path : {"train/a/1.png", "train/b/1.png", "val/a/1.png", "val/b/1.png"})
    put(path);
  put("train/a/2.png", "text.png");
  put("val/b/2.png", "text.png");
  std::vector<std::string> heard;
  OpenOptions options;
  options.on_bad_pictures = [&](bool held_out, const std::vector<Diagnostic>& why) {
    for (const Diagnostic& d : why) heard.push_back((held_out ? "eval " : "train ") + d.file);
  };
  const DataSets sets = open_data(config("", "", "eval = { files = 'val' }\n"), options);
  EXPECT_THAT(heard, ElementsAre("train " + (folder_ / "train/a/2.png"),
                                 "eval " + (folder_ / "val/b/2.png")));
  EXPECT_THAT(labels(*sets.train), ElementsAre(0, 1));
}

TEST_F(ImageData, DamageThatHeadersHideEndsWithThePath) {
  put("train/a/1.png", "wrong_sum.png");
  const DataSets sets = open(config());
  EXPECT_THAT(
      error_of([&] { pictures(*sets.train); }),
      AllOf(HasSubstr("a/1.png"), HasSubstr("damaged PNG"),
            HasSubstr("(correct the file; data.on_bad = \"skip\" leaves such pictures out)")));
  put("train/a/1.png", "large.png");
  EXPECT_THAT(error_of([&] { pictures(*sets.train); }), HasSubstr("has changed since"));
}

TEST_F(ImageData, AlphaIsLeftOutAndTold) {
  put("train/a/1.png", "rgba.png");
  put("train/a/2.png", "rgb.png");
  const DataSets sets = open(config());
  EXPECT_THAT(said_, HasSubstr("1 of 2 pictures have an alpha channel"));
}

TEST_F(ImageData, ACropSeesThePictureBeforeItIsResized) {
  put("train/a/1.png", "large.png");
  const std::string all =
      "images = { from = 'images', augment = ['random_resized_crop(8, scale=[1, 1], "
      "ratio=[3/4, 3/4])'] }\n";
  const DataSets cut = open(config("resize_short = 8\ncenter_crop = 8", all));
  const DataSets whole = open(config("resize = 8"));
  const Augmentation augmentation{3, 1};
  EXPECT_EQ(pictures(*cut.train, &augmentation), pictures(*whole.train));
  EXPECT_NE(pictures(*cut.train), pictures(*whole.train));
}

TEST_F(ImageData, FingerprintsKnowNamesAndSizes) {
  put("train/a/1.png");
  put("train/b/1.png");
  const SplitConfig split = config().train;
  const auto before = fingerprint_of(split);
  EXPECT_EQ(first_difference("data.train", before, fingerprint_of(split)), std::nullopt);
  put("train/b/2.png");
  EXPECT_NE(first_difference("data.train", before, fingerprint_of(split)), std::nullopt);
  fs::rename(folder_ / "train/b/2.png", folder_ / "train/b/3.png");
  const auto renamed = fingerprint_of(split);
  put("train/b/2.png");
  fs::remove(folder_ / "train/b/3.png");
  EXPECT_NE(first_difference("data.train", renamed, fingerprint_of(split)), std::nullopt);
}

TEST(ImageSizes, LongerSidesLoseTheirFraction) {
  ImageFiles kind;
  kind.resize_short = 256;
  EXPECT_EQ(resized(kind, {375, 500}), (ImageSize{256, 341}));
  EXPECT_EQ(resized(kind, {500, 375}), (ImageSize{341, 256}));
  EXPECT_EQ(resized(kind, {100, 100}), (ImageSize{256, 256}));
  EXPECT_EQ(crop_start(5, 4), 0);  // halves go to the even number, as Python's round
  EXPECT_EQ(crop_start(7, 4), 2);
  EXPECT_EQ(crop_start(256, 224), 16);
}

TEST(ImageKeys, AreCheckedTogether) {
  const TemporaryFolder folder;
  const auto says = [&](const std::string& keys) {
    return error_of(
        [&] { data_config(folder, "kind = 'images'\n" + keys + "\ntrain = { files = 'a' }\n"); });
  };
  EXPECT_THAT(says("channels = 2"), HasSubstr("expected 1 or 3"));
  EXPECT_THAT(says("resize = [1, 2, 3]"), HasSubstr("[ height, width ]"));
  EXPECT_THAT(says("resize = [0, 2]"), HasSubstr("resize"));
  EXPECT_THAT(says("resize = 8\nresize_short = 8"), HasSubstr("leave data.resize"));
  EXPECT_THAT(says("resize_short = 8\ncenter_crop = 9"), HasSubstr("at most 8"));
  EXPECT_THAT(says("columns = ['a']"), HasSubstr("not an option of images"));
  EXPECT_EQ(says("resize = [8, 9]\ncenter_crop = 8\nchannels = 1"), "no error");
}

}  // namespace
}  // namespace tandem
