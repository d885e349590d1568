// mixup and cutmix: shares of Beta(alpha, alpha), the same partner for all fields, labels by area.
#include "engine/data/mixed_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

constexpr std::int64_t count = 300, height = 6, width = 10, plane = height * width;

/// Sample i is a picture of the number i twice, and the label i.
std::shared_ptr<const DataSource> numbered() {
  std::vector<float> pictures, labels;
  for (std::int64_t i = 0; i < count; ++i) {
    pictures.insert(pictures.end(), 2 * plane, static_cast<float>(i));
    labels.push_back(static_cast<float>(i));
  }
  return make_array_source({{"x", HostTensor::from<float>({count, 2, height, width}, pictures)},
                            {"y", HostTensor::from<float>({count, 1}, labels)}});
}

struct MixedSamples {
  std::vector<float> x, y;
};
MixedSamples filled(const DataSource& source, const Augmentation* augmentation) {
  MixedSamples all{std::vector<float>(count * 2 * plane), std::vector<float>(count)};
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  source.fill(0, numbers, augmentation, all.x.data());
  source.fill(1, numbers, augmentation, all.y.data());
  return all;
}

TEST(MixedSource, LeavesEvaluationAlone) {
  const auto source = make_mixed_source(numbered(), {.mixup = 0.2, .cutmix = 1}, {});
  const MixedSamples mixed = filled(*source, nullptr), plain = filled(*numbered(), nullptr);
  EXPECT_EQ(mixed.x, plain.x);
  EXPECT_EQ(mixed.y, plain.y);
  EXPECT_EQ(make_mixed_source(source, {}, {}), source);
}

TEST(MixedSource, MixupAddsPictureAndLabelAlike) {
  const auto source = make_mixed_source(numbered(), {.mixup = 1}, {});
  const Augmentation first{1, 0}, later{1, 1};
  const MixedSamples mixed = filled(*source, &first);
  int changed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < 2 * plane; ++k)
      ASSERT_NEAR(mixed.x[i * 2 * plane + k], mixed.y[i], 1e-3) << i;
    changed += std::abs(mixed.y[i] - static_cast<float>(i)) > 0.01 ? 1 : 0;
  }
  EXPECT_GT(changed, 250);
  EXPECT_EQ(mixed.y, filled(*source, &first).y);
  EXPECT_NE(mixed.y, filled(*source, &later).y);
}

TEST(MixedSource, CutmixCutsARectangleAndCountsItsArea) {
  const auto source = make_mixed_source(numbered(), {.cutmix = 1}, {});
  const Augmentation augmentation{3, 2};
  const MixedSamples mixed = filled(*source, &augmentation);
  int cuts = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::set<float> values;
    double sum = 0;
    for (std::size_t k = 0; k < plane; ++k) {
      const float value = mixed.x[i * 2 * plane + k];
      ASSERT_EQ(value, mixed.x[(i * 2 + 1) * plane + k]);
      values.insert(value);
      sum += static_cast<double>(value);
    }
    EXPECT_LE(values.size(), 2u);
    cuts += values.size() == 2 ? 1 : 0;
    EXPECT_NEAR(mixed.y[i], sum / plane, 1e-3) << i;  // the mean of the picture, by area
  }
  EXPECT_GT(cuts, 200);
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)).
TEST(MixedSource, SharesAreOfTheBetaDistribution) {
  for (const double alpha : {0.2, 1.0, 4.0}) {
    double sum = 0, squares = 0;
    constexpr int draws = 20'000;
    for (int i = 0; i < draws; ++i) {
      const double share = draw_mixture({.mixup = alpha}, {7, 0}, i, draws, 0, 0).share;
      ASSERT_TRUE(share >= 0 && share <= 1);
      sum += share, squares += share * share;
    }
    const double mean = sum / draws, variance = squares / draws - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.01) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.005) << alpha;
  }
  const double tiny = draw_mixture({.mixup = 1e-6}, {7, 0}, 1, 2, 0, 0).share;
  EXPECT_TRUE(tiny >= 0 && tiny <= 1);
}

TEST(MixedSource, RefusesFieldsThatCannotBeMixed) {
  const auto source =
      make_array_source({{"x", HostTensor::from<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                         {"y", HostTensor::from<std::int64_t>({2}, {0, 1})}});
  EXPECT_THAT(error_of([&] { make_mixed_source(source, {.mixup = 1}, {}); }),
              HasSubstr("one_hot(N)"));
  EXPECT_THAT(error_of([&] { make_mixed_source(source, {.mixup = 1, .fields = {"z"}}, {}); }),
              HasSubstr("no data field \"z\""));
  EXPECT_EQ(error_of([&] { make_mixed_source(source, {.mixup = 1, .fields = {"x"}}, {}); }),
            "no error");
}

TEST(MixedSource, IsConfigured) {
  const testing::TemporaryFolder folder;
  const DataConfig config =
      testing::data_config(folder,
                           "kind = 'npz'\nmix = { mixup = 0.2, cutmix = 1, fields = ['x', 'y'] }\n"
                           "train = { files = 'a.npz' }\n");
  EXPECT_EQ(config.mix, (MixConfig{.mixup = 0.2, .cutmix = 1, .fields = {"x", "y"}}));
  EXPECT_THAT(error_of([&] {
                testing::data_config(
                    folder, "kind = 'npz'\nmix = { mixup = -1 }\ntrain = { files = 'a' }\n");
              }),
              HasSubstr("data.mix.mixup"));
}

}  // namespace
}  // namespace tandem
