// Augmentations of pictures: what they do to bytes as PIL and torchvision do it, and what they
// draw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "engine/config/keys/config_check.h"
#include "engine/data/data_source.h"
#include "engine/data/images/pixel_operations.h"
#include "engine/formats/images/decoders.h"
#include "engine/formats/images/image_file.h"
#include "tests/training/data/image_expectations.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using testing::bytes_of_digits;
using testing::error_of;
using testing::greatest_difference;
using ::testing::HasSubstr;
using testing::image_expectations;
using testing::image_path;
using Bytes = std::vector<std::uint8_t>;
using Json = nlohmann::json;

Image small_picture() {
  Image image;
  read_image(image_path("small.png"), {}, image);
  return image;
}

TEST(PixelOperations, AreThoseOfPil) {
  if (*png_problem().what != '\0') GTEST_SKIP() << "this build lacks libpng";
  using Operation = std::function<void(Pixels, double, std::uint8_t*)>;
  const std::map<std::string, Operation> operations{
      {"brightness", [](Pixels p, double n, std::uint8_t*) { adjust_brightness(p, n); }},
      {"contrast", [](Pixels p, double n, std::uint8_t*) { adjust_contrast(p, n); }},
      {"saturation", adjust_saturation},
      {"sharpness", adjust_sharpness},
      {"hue", [](Pixels p, double n, std::uint8_t*) { adjust_hue(p, n); }},
      {"posterize", [](Pixels p, double n, std::uint8_t*) { posterize(p, static_cast<int>(n)); }},
      {"solarize", [](Pixels p, double n, std::uint8_t*) { solarize(p, n); }},
      {"autocontrast", [](Pixels p, double, std::uint8_t*) { stretch_contrast(p); }},
      {"equalize", [](Pixels p, double, std::uint8_t*) { equalize(p); }},
      {"shear_x", [](Pixels p, double n, std::uint8_t* s) { transform_pixels(p, {.b = n}, s); }},
      {"shear_y", [](Pixels p, double n, std::uint8_t* s) { transform_pixels(p, {.d = n}, s); }},
      {"translate_x",
       [](Pixels p, double n, std::uint8_t* s) { transform_pixels(p, {.c = -n}, s); }},
      {"translate_y",
       [](Pixels p, double n, std::uint8_t* s) { transform_pixels(p, {.f = -n}, s); }},
      {"rotate", [](Pixels p, double n, std::uint8_t* s) {
         transform_pixels(p, rotation(n, p.height, p.width), s);
       }}};
  std::set<std::string> seen;
  for (const Json& expected : image_expectations().at("operations")) {
    Image image = small_picture();
    const std::string name = expected.at("name");
    seen.insert(name);
    Bytes scratch(image.pixels.size());
    operations.at(name)({image.pixels.data(), 3, image.height, image.width}, expected.at("number"),
                        scratch.data());
    EXPECT_EQ(greatest_difference(image.pixels, bytes_of_digits(expected.at("pixels"))), 0)
        << name << " " << expected.at("number");
  }
  EXPECT_EQ(seen.size(), operations.size());
}

TEST(PixelOperations, GreyKeepsItsColoursAndConstantsStay) {
  Bytes grey{0, 50, 100, 200}, scratch(4);
  const Pixels picture{grey.data(), 1, 2, 2};
  adjust_saturation(picture, 0.2, scratch.data());
  adjust_hue(picture, 0.4);
  EXPECT_EQ(grey, (Bytes{0, 50, 100, 200}));
  Bytes constant(4, 77);
  stretch_contrast({constant.data(), 1, 2, 2});
  equalize({constant.data(), 1, 2, 2});
  EXPECT_EQ(constant, Bytes(4, 77));
}

/// A picture of 3 x 12 x 16 bytes, that many times.
HostTensor pictures(std::int64_t count) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < 3 * 12 * 16; ++k)
      pixels.push_back(static_cast<std::uint8_t>(k * 7 % 251 + 1));
  }
  return HostTensor::from<std::uint8_t>({count, 3, 12, 16}, pixels);
}

std::vector<Bytes> augmented(const std::string& function, std::int64_t count = 40,
                             Augmentation augmentation = {5, 0}) {
  FieldConfig field{.name = "x", .from = "a"};
  field.augment.push_back(parse_transform(function));
  const auto source = make_array_source({{"a", pictures(count)}}, {field});
  std::vector<Bytes> all;
  for (std::int64_t i = 0; i < count; ++i) {
    all.emplace_back(source->fields()[0].sample.bytes());
    source->fill(0, std::vector<std::int64_t>{i}, &augmentation, all.back().data());
  }
  return all;
}

TEST(Augmentations, DependOnSeedEpochAndSampleAlone) {
  for (const char* function :
       {"random_resized_crop(12, 16)", "color_jitter(brightness=0.5, hue=0.2)",
        "rand_augment(num_ops=2, magnitude=15)", "random_erasing(p=0.9)"}) {
    const std::vector<Bytes> first = augmented(function);
    EXPECT_EQ(first, augmented(function)) << function;
    EXPECT_NE(first, augmented(function, 40, {5, 1})) << function;
    EXPECT_NE(first, augmented(function, 40, {6, 0})) << function;
    EXPECT_GT(std::set<Bytes>(first.begin(), first.end()).size(), 10u) << function;
  }
}

// A sampler may read a sample several times an epoch.
TEST(Augmentations, ASampleThatIsReadAgainIsAnother) {
  FieldConfig field{.name = "x", .from = "a"};
  field.augment.push_back(parse_transform("random_resized_crop(12, 16)"));
  const auto source = make_array_source({{"a", pictures(2)}}, {field});
  const std::size_t bytes = source->fields()[0].sample.bytes();
  const auto read = [&](const std::vector<std::int64_t>& samples,
                        const std::vector<std::uint32_t>& repeats) {
    Bytes all(samples.size() * bytes);
    const Augmentation augmentation{5, 0, repeats};
    source->fill(0, samples, &augmentation, all.data());
    std::vector<Bytes> each;
    for (std::size_t i = 0; i < samples.size(); ++i)
      each.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i * bytes),
                        all.begin() + static_cast<std::ptrdiff_t>((i + 1) * bytes));
    return each;
  };
  const std::vector<Bytes> plain = read({0, 1}, {});
  const std::vector<Bytes> again = read({0, 1, 0, 0}, {0, 0, 1, 2});
  EXPECT_EQ(again[0], plain[0]);
  EXPECT_EQ(again[1], plain[1]);
  EXPECT_NE(again[2], plain[0]);
  EXPECT_NE(again[3], plain[0]);
  EXPECT_NE(again[3], again[2]);
  EXPECT_EQ(read({0}, {2})[0], again[3]);
}

TEST(Augmentations, AVerticalFlipTurnsTheRowsAround) {
  const Bytes plain = augmented("random_erasing(p=0)", 1)[0];
  Bytes turned;
  for (std::size_t plane = 0; plane < 3; ++plane) {
    for (std::size_t y = 12; y-- > 0;) {
      const auto row = plain.begin() + static_cast<std::ptrdiff_t>((plane * 12 + y) * 16);
      turned.insert(turned.end(), row, row + 16);
    }
  }
  int flipped = 0;
  for (const Bytes& picture : augmented("random_vertical_flip", 200)) {
    if (picture == turned)
      ++flipped;
    else
      EXPECT_EQ(picture, plain);
  }
  EXPECT_NEAR(flipped, 100, 36);  // five standard deviations
}

TEST(Augmentations, JitterDrawsItsFactorsFromTheRange) {
  if (*png_problem().what != '\0') GTEST_SKIP() << "this build lacks libpng";
  const Image small = small_picture();
  for (const auto& [name, option] : {std::pair("brightness", "brightness=[0.4, 0.4]"),
                                     std::pair("contrast", "contrast=[1.7, 1.7]"),
                                     std::pair("saturation", "saturation=[0, 0]")}) {
    FieldConfig field{.name = "x", .from = "a"};
    field.augment.push_back(parse_transform("color_jitter(" + std::string(option) + ")"));
    const auto source = make_array_source(
        {{"a", HostTensor::from<std::uint8_t>({1, 3, 12, 16}, small.pixels)}}, {field});
    const Augmentation augmentation{1, 1};
    Bytes result(small.pixels.size());
    source->fill(0, std::vector<std::int64_t>{0}, &augmentation, result.data());
    const double number = std::string(name) == "brightness" ? 0.4
                          : std::string(name) == "contrast" ? 1.7
                                                            : 0.0;
    for (const Json& expected : image_expectations().at("operations")) {
      if (expected.at("name") != name || expected.at("number") != number) continue;
      EXPECT_EQ(result, bytes_of_digits(expected.at("pixels"))) << name;
    }
  }
}

TEST(Augmentations, ErasingLeavesARectangle) {
  const Bytes plain = augmented("random_erasing(p=0)", 1)[0];
  int erased = 0;
  for (const Bytes& picture : augmented("random_erasing(scale=[0.1, 0.2], value=0)", 200)) {
    if (picture == plain) continue;
    ++erased;
    std::int64_t count = 0, top = 12, bottom = -1, left = 16, right = -1;
    for (std::int64_t i = 0; i < 12 * 16; ++i) {
      if (picture[static_cast<std::size_t>(i)] != 0) continue;
      ++count;
      top = std::min(top, i / 16), bottom = std::max(bottom, i / 16);
      left = std::min(left, i % 16), right = std::max(right, i % 16);
    }
    EXPECT_EQ(count, (bottom - top + 1) * (right - left + 1));
    EXPECT_GE(static_cast<double>(count), 0.05 * 12 * 16);  // sides are rounded
    EXPECT_LE(static_cast<double>(count), 0.3 * 12 * 16);
  }
  EXPECT_GT(erased, 60);  // about half of 200
  EXPECT_LT(erased, 140);
  for (const Bytes& picture : augmented("random_erasing(p=1, value=[1, 2, 255])", 20))
    EXPECT_NE(picture, plain);
}

// Each row of the picture is one number: a crop mixes neighbouring rows and no columns, and of the
// rows that it takes the first one differs from draw to draw.
TEST(Augmentations, CropsAreWindows) {
  Bytes rows;
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 20; ++y) rows.insert(rows.end(), 16, static_cast<std::uint8_t>(10 * y));
  }
  FieldConfig field{.name = "x", .from = "a"};
  field.augment.push_back(parse_transform("random_resized_crop(20, 16, scale=[0.1, 0.3])"));
  const auto source =
      make_array_source({{"a", HostTensor::from<std::uint8_t>({1, 3, 20, 16}, rows)}}, {field});
  std::set<int> first;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    const Augmentation augmentation{1, epoch};
    Bytes result(rows.size());
    source->fill(0, std::vector<std::int64_t>{0}, &augmentation, result.data());
    for (std::size_t y = 0; y < 20; ++y) {
      for (std::size_t x = 1; x < 16; ++x) ASSERT_EQ(result[16 * y + x], result[16 * y]);
      ASSERT_GE(result[16 * y], result[y == 0 ? 0 : 16 * (y - 1)]);
    }
    // At most 0.3 of 320 pixels with a ratio of 3 to 4 are 12 rows.
    EXPECT_LE(result[16 * 19] - result[0], 110);
    first.insert(result[0]);
  }
  EXPECT_GT(first.size(), 6u);
}

TEST(Augmentations, WhatDoesNotFitIsRefused) {
  const auto written = [](const std::string& function) {
    return error_of([&] {
      try {
        parse_transform(function);
      } catch (const std::invalid_argument& problem) {
        throw Error(ErrorKind::usage, Diagnostic{.message = problem.what()});
      }
    });
  };
  EXPECT_THAT(written("color_jitter(hue=0.6)"), HasSubstr("0 to 0.5"));
  EXPECT_THAT(written("color_jitter(brightness=[2, 1])"), HasSubstr("[least, most]"));
  EXPECT_THAT(written("color_jitter(light=1)"), HasSubstr("unknown option `light`"));
  EXPECT_THAT(written("rand_augment(magnitude=31)"), HasSubstr("at most 30"));
  EXPECT_THAT(written("random_erasing(p=2)"), HasSubstr("probability"));
  EXPECT_THAT(written("random_erasing(scale=[0.5, 1.5])"), HasSubstr("part of the area"));
  EXPECT_THAT(written("random_resized_crop(8, ratio=1)"), HasSubstr("[least, most]"));
  EXPECT_EQ(written("random_resized_crop(8, 9, scale=[0.1, 1])"), "no error");

  const auto on = [](const HostTensor& samples, const std::string& function) {
    FieldConfig field{.name = "x", .from = "a"};
    field.augment.push_back(parse_transform(function));
    return error_of([&] { make_array_source({{"a", samples}}, {field}); });
  };
  const HostTensor floats = HostTensor::from<float>({1, 3, 2, 2}, std::vector<float>(12, 1));
  EXPECT_THAT(on(floats, "color_jitter(hue=0.1)"), HasSubstr("pictures of bytes"));
  EXPECT_THAT(on(floats, "random_erasing(value=[1, 2])"), HasSubstr("2 values for the channels"));
  EXPECT_EQ(on(floats, "random_erasing(value=[1, 2, 0.5])"), "no error");
  const HostTensor two = HostTensor::from<std::uint8_t>({1, 2, 2, 2}, Bytes(8, 1));
  EXPECT_THAT(on(two, "rand_augment"), HasSubstr("pictures of bytes"));
  EXPECT_THAT(on(two, "random_erasing(value=0.5)"), HasSubstr("whole number"));
}

}  // namespace
}  // namespace tandem
