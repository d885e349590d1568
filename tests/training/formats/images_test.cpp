// Pictures decoded as PIL decodes them, at other sizes as PIL resizes them; damaged and hostile
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/files.h"
#include "engine/formats/images/decoders.h"
#include "engine/formats/images/image_file.h"
#include "engine/formats/images/resample.h"
#include "tests/harness/peak_memory.h"
#include "tests/training/data/image_expectations.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::bytes_of_digits;
using testing::greatest_difference;
using ::testing::HasSubstr;
using testing::image_expectations;
using testing::image_path;
using testing::TemporaryFolder;
using Json = nlohmann::json;

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*jpeg_problem().what != '\0' || *png_problem().what != '\0')
      GTEST_SKIP() << "this build lacks libjpeg or libpng";
  }
  /// The text of the Error{data} that reading the file throws; "" if it throws none.
  static std::string refusal(const std::string& path) {
    try {
      Image image;
      read_image(path, {}, image);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      return error.what();
    }
    return "";
  }
};

TEST_F(Images, AreDecodedAsPilDecodesThem) {
  for (const Json& file : image_expectations().at("files")) {
    const std::string name = file.at("name");
    SCOPED_TRACE(name);
    const ImageHeader header = read_image_header(image_path(name));
    EXPECT_EQ(header.height, file.at("height"));
    EXPECT_EQ(header.width, file.at("width"));
    const int allowed = file.at("close").get<bool>() ? 1 : 0;
    for (const int channels : {3, 1}) {
      Image image;
      read_image(image_path(name), {.channels = channels}, image);
      EXPECT_EQ(image.channels, channels);
      EXPECT_EQ(image.height, header.height);
      EXPECT_EQ(image.width, header.width);
      const auto expected = bytes_of_digits(file.at(channels == 3 ? "rgb" : "grey"));
      EXPECT_LE(greatest_difference(image.pixels, expected), allowed) << channels;
    }
  }
}

TEST_F(Images, HeadersTellColourAndAlpha) {
  const auto header = [](const char* name) { return read_image_header(image_path(name)); };
  EXPECT_TRUE(header("rgba.png").has_alpha && header("grey_alpha.png").has_alpha);
  EXPECT_FALSE(header("rgb.png").has_alpha || header("jpeg_420.jpg").has_alpha);
  EXPECT_TRUE(header("rgb.png").has_colour && header("palette.png").has_colour);
  EXPECT_TRUE(header("jpeg_420.jpg").has_colour);
  EXPECT_FALSE(header("grey.png").has_colour || header("grey_alpha.png").has_colour);
  EXPECT_FALSE(header("jpeg_grey.jpg").has_colour);
  EXPECT_EQ(header("jpeg_called.png").format, ImageFormat::jpeg);  // by its bytes
}

TEST_F(Images, WhatIsNotReadIsRefusedByName) {
  for (const Json& file : image_expectations().at("refused")) {
    const std::string name = file.at("name");
    const std::string words = file.at("words");
    EXPECT_THAT(refusal(image_path(name)), AllOf(HasSubstr(name), HasSubstr(words)));
  }
}

// Wherever a file ends, that is an error of the data, and nothing else happens.
TEST_F(Images, CutFilesAreErrors) {
  const TemporaryFolder folder;
  for (const char* name : {"rgb.png", "interlaced.png", "palette.png", "jpeg_420.jpg",
                           "progressive.jpg", "restarts.jpg"}) {
    const std::string whole = read_file(image_path(name));
    // After the last pixels there are checksums and marks, which files may lack.
    constexpr std::size_t behind_pixels = 24;
    ASSERT_GT(whole.size(), 2 * behind_pixels);
    for (std::size_t bytes = 0; bytes + behind_pixels <= whole.size(); bytes += 5) {
      write_file(folder / "cut.png", whole.substr(0, bytes));
      EXPECT_THAT(refusal(folder / "cut.png"), HasSubstr("cut.png")) << name << " " << bytes;
    }
    for (std::size_t bytes = whole.size() - behind_pixels; bytes < whole.size(); ++bytes) {
      write_file(folder / "cut.png", whole.substr(0, bytes));
      refusal(folder / "cut.png");  // either way
    }
  }
}

// Any byte may be wrong: the picture is another one, or an error names the file.
TEST_F(Images, ChangedBytesDoNoHarm) {
  const TemporaryFolder folder;
  int refused = 0;
  for (const char* name : {"interlaced.png", "palette_alpha.png", "progressive.jpg"}) {
    const std::string whole = read_file(image_path(name));
    for (std::size_t at = 0; at < whole.size(); at += 3) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0xff);
      write_file(folder / "changed.jpg", changed);
      const std::string text = refusal(folder / "changed.jpg");
      refused += text.empty() ? 0 : 1;
      EXPECT_TRUE(text.empty() || text.find("changed.jpg") != std::string::npos) << text;
    }
  }
  EXPECT_GT(refused, 100);  // a PNG's checksums cover every byte
}

// 12000 x 12000 pixels are within the limit, and 432 MB; a few hundred bytes are not such a
// picture.
TEST_F(Images, HollowFilesTakeNoMemory) {
  for (const char* name : {"hollow.png", "hollow.jpg", "bomb.png", "bomb.jpg"}) {
    const std::size_t peak = testing::peak_memory_of([&] {
      EXPECT_NE(refusal(image_path(name)), "");
      if (HasFailure()) throw 1;
    });
    EXPECT_LT(peak, std::size_t{8} << 20) << name;
  }
}

TEST_F(Images, JpegsAreDecodedAtThePartThatIsEnough) {
  Image image;
  for (const Json& scaled : image_expectations().at("scaled")) {
    const std::int64_t height = scaled.at("height"), width = scaled.at("width");
    read_image(image_path("photo.jpg"), {.least_height = height, .least_width = width}, image);
    EXPECT_EQ(image.height, height);
    EXPECT_EQ(image.width, width);
    EXPECT_LE(greatest_difference(image.pixels, bytes_of_digits(scaled.at("pixels"))), 1) << height;
    ImageHeader header = read_image(image_path("photo.jpg"),
                                    {.least_height = height + 1, .least_width = width}, image);
    EXPECT_EQ(image.height, 2 * height);
    EXPECT_EQ(header.height, 64);  // in the file
  }
  read_image(image_path("large.png"), {.least_height = 2, .least_width = 2}, image);
  EXPECT_EQ(image.height, 40);  // PNG has no parts
}

TEST_F(Images, WindowsAreResampledAsPilDoes) {
  Image large;
  read_image(image_path("large.png"), {}, large);
  std::vector<float> floats(large.pixels.begin(), large.pixels.end());
  for (const Json& cropped : image_expectations().at("cropped")) {
    const std::vector<std::int64_t> window = cropped.at("window");
    const PlanePart part{3, large.plane(), large.width, window[0], window[1], window[2], window[3]};
    const auto expected = bytes_of_digits(cropped.at("pixels"));
    std::vector<std::uint8_t> bytes(expected.size());
    resample_planes(large.pixels.data(), part, 12, 10, bytes.data());
    EXPECT_LE(greatest_difference(bytes, expected), 1) << cropped.at("window");
    std::vector<float> result(expected.size());
    resample_planes(floats.data(), part, 12, 10, result.data());
    for (std::size_t i = 0; i < result.size(); ++i)
      ASSERT_NEAR(result[i], expected[i], 1.01) << cropped.at("window") << " " << i;
  }
}

TEST(ImageNames, TellFormats) {
  EXPECT_TRUE(names_image("a.JPG") && names_image("a.b.jpeg") && names_image("x.Png"));
  EXPECT_FALSE(names_image("a.jpg.txt") || names_image("png") || names_image("a.webp"));
  EXPECT_TRUE(names_other_image("a.WEBP") && names_other_image("b.tiff"));
  EXPECT_FALSE(names_other_image("a.csv") || names_other_image("a.png"));
}

}  // namespace
}  // namespace tandem
