// Orders of an epoch: drawn by weight, by class, and from sources that are mixed.
#include "engine/data/order/sample_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "engine/data/loader.h"
#include "engine/data/order/drawn_order.h"
#include "engine/data/order/source_order.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using Samples = std::vector<std::int64_t>;

/// How often each of `kinds` numbers occurs in a list.
std::vector<double> counts_of(const Samples& samples, std::size_t kinds) {
  std::vector<double> counts(kinds);
  for (const std::int64_t sample : samples) ++counts.at(static_cast<std::size_t>(sample));
  return counts;
}

/// Σ (found − expected)² / expected over what is expected at all.
double chi_square(const std::vector<double>& found, const std::vector<double>& weights) {
  const double all = std::accumulate(found.begin(), found.end(), 0.0);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double chi = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = all * weights[i] / sum;
    if (expected > 0) chi += (found[i] - expected) * (found[i] - expected) / expected;
  }
  return chi;
}

// Four degrees of freedom: the 1e-6 quantile is 33.
TEST(WeightedOrder, DrawsAsOftenAsTheWeightsSay) {
  const std::vector<double> weights{1, 0, 2.5, 0.25, 7, 0, 1.5};
  const auto order = weighted_order(weights, 200'000);
  EXPECT_EQ(order->count(), 200'000);
  const std::vector<double> counts = counts_of(order->epoch(1, 0).samples, weights.size());
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[5], 0);
  EXPECT_LT(chi_square(counts, weights), 33);
  // Counts would fit as well if the same number were drawn many times in a row.
  const Samples drawn = order->epoch(1, 0).samples;
  double equal_neighbours = 0;
  for (std::size_t i = 1; i < drawn.size(); ++i) equal_neighbours += drawn[i] == drawn[i - 1];
  const double sum = 12.25;
  double expected = 0;
  for (const double weight : weights) expected += weight * weight / (sum * sum);
  EXPECT_NEAR(equal_neighbours / static_cast<double>(drawn.size()), expected, 0.006);
}

TEST(WeightedOrder, APlaceAloneSaysWhatStandsThere) {
  const std::vector<double> weights{3, 1, 4, 1, 5, 9, 2, 6};
  const Samples few = weighted_order(weights, 100)->epoch(7, 3).samples;
  Samples many = weighted_order(weights, 5000)->epoch(7, 3).samples;
  EXPECT_NE(few, weighted_order(weights, 100)->epoch(7, 4).samples);
  EXPECT_NE(few, weighted_order(weights, 100)->epoch(8, 3).samples);
  many.resize(100);
  EXPECT_EQ(few, many);
}

TEST(BalancedOrder, DrawsClassesAlikeAndTheirSamplesAlike) {
  Samples classes(40, 5);  // 40 of the class 5, four of -1, one of 9
  classes.insert(classes.end(), {-1, -1, -1, -1, 9});
  const auto order = balanced_order(classes, 120'000);
  const std::vector<double> counts = counts_of(order->epoch(2, 1).samples, classes.size());
  std::vector<double> weights(40, 1.0 / 40);
  weights.insert(weights.end(), {0.25, 0.25, 0.25, 0.25, 1});
  EXPECT_LT(chi_square(counts, weights), 100);  // 44 degrees of freedom: 1e-6 quantile 102
}

TEST(EpochSamples, RepeatsCountWhatStoodBefore) {
  EXPECT_THAT(repeats_in({2, 0, 2, 2, 1, 0}, 3), ElementsAre(0, 0, 1, 2, 0, 1));
  const EpochSamples drawn = weighted_order({1, 1}, 5)->epoch(1, 0);
  EXPECT_EQ(drawn.repeats, repeats_in(drawn.samples, 2));
  EXPECT_TRUE(shuffled_order(5, {})->epoch(1, 0).repeats.empty());
}

// 70 samples of weight 7 and 50 of weight 3 are 0.7 and 0.3 of the places: the first source is at
// its end after 70 / 0.7 places, the second after 50 / 0.3.
TEST(SourceOrder, AnEpochEndsWithTheFirstOrTheLastSource) {
  const std::vector<SourceShare> sources{{0, 70, 7}, {70, 50, 3}};
  const auto taken_of = [&](EpochEnd end) {
    const auto order = source_order(sources, end, {});
    const Samples samples = order->epoch(1, 0).samples;
    EXPECT_EQ(static_cast<std::int64_t>(samples.size()), order->count());
    const std::int64_t first = std::count_if(samples.begin(), samples.end(),
                                             [](std::int64_t sample) { return sample < 70; });
    return std::pair(first, order->count() - first);
  };
  EXPECT_EQ(taken_of(EpochEnd::first), std::pair(std::int64_t{70}, std::int64_t{30}));
  const auto [first, second] = taken_of(EpochEnd::last);
  EXPECT_EQ(second, 50);
  EXPECT_NEAR(static_cast<double>(first), 50 * 0.7 / 0.3, 2);  // its last one comes a little early
}

TEST(SourceOrder, EveryStretchHasTheShares) {
  const std::vector<SourceShare> sources{{0, 500, 0.5}, {500, 100, 1.5}, {600, 900, 3}};
  const Samples samples = source_order(sources, EpochEnd::last, {})->epoch(3, 2).samples;
  double taken[3] = {};
  for (std::size_t place = 0; place < samples.size(); ++place) {
    ++taken[samples[place] < 500 ? 0 : samples[place] < 600 ? 1 : 2];
    const double places = static_cast<double>(place + 1);
    ASSERT_NEAR(taken[0], places * 0.1, 2) << place;
    ASSERT_NEAR(taken[1], places * 0.3, 2) << place;
    ASSERT_NEAR(taken[2], places * 0.6, 2) << place;
  }
}

TEST(SourceOrder, ASourceIsReadWholeBeforeAnythingOfItAgain) {
  const std::vector<SourceShare> sources{{0, 37, 1}, {37, 11, 2}};
  for (const EpochEnd end : {EpochEnd::first, EpochEnd::last}) {
    const auto order = source_order(sources, end, {});
    Samples read[2];
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
      for (const std::int64_t sample : order->epoch(5, epoch).samples)
        read[sample < 37 ? 0 : 1].push_back(sample);
    }
    for (std::size_t s = 0; s < 2; ++s) {
      const auto count = static_cast<std::size_t>(sources[s].count);
      std::set<Samples> different;
      for (std::size_t at = 0; at + count <= read[s].size(); at += count) {
        Samples pass(read[s].begin() + static_cast<std::ptrdiff_t>(at),
                     read[s].begin() + static_cast<std::ptrdiff_t>(at + count));
        different.insert(pass);
        std::sort(pass.begin(), pass.end());
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(pass[i], sources[s].first + static_cast<std::int64_t>(i));
      }
      EXPECT_EQ(different.size(), read[s].size() / count);  // each pass in an order of its own
    }
  }
}

TEST(SourceOrder, WithoutShufflingSourcesStandInTheirOrder) {
  const auto order =
      source_order({{0, 3, 1}, {3, 2, 1}}, EpochEnd::last, {ShuffleConfig::Kind::none});
  EXPECT_THAT(order->epoch(1, 0).samples, ElementsAre(0, 3, 1, 4, 2));
  EXPECT_THAT(order->epoch(1, 1).samples, ElementsAre(0, 3, 1, 4, 2));
}

TEST(SourceOrder, RefusesEpochsWithoutAnEnd) {
  EXPECT_THAT(error_of([] {
                source_order({{0, 1000, 1e-9}, {1000, 1000, 1}}, EpochEnd::last, {});
              }),
              HasSubstr("an epoch reads too many samples"));
  EXPECT_EQ(source_order({{0, 1000, 1e-9}, {1000, 1000, 1}}, EpochEnd::first, {})->count(), 1000);
}

std::shared_ptr<const DataSource> counting(std::int64_t samples) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(samples));
  std::iota(rows.begin(), rows.end(), 0);
  return make_array_source({{"x", HostTensor::from<std::int64_t>({samples}, rows)}});
}

/// What a rank reads from a place on, by optimizer step.
std::vector<Samples> read_by(const std::shared_ptr<const SampleOrder>& order, DataPosition start,
                             const RankPlace& place) {
  LoaderOptions options{.fields = {0}, .batch_size = 6, .micro_batch_size = 6};
  options.order = std::make_shared<OpenEpochs>(order, 9);
  options.seed = 9;
  options.start = start;
  options.epochs = 3;
  options.threads = 2;
  options.place = place;
  std::int64_t ring[3][6];
  Loader loader(counting(48), options,
                [&](int, const MicroBatch& micro_batch) { return ring[micro_batch.ticket % 3]; });
  std::vector<Samples> steps;
  while (const std::optional<MicroBatch> micro_batch = loader.next()) {
    const std::int64_t* const from = ring[micro_batch->ticket % 3];
    steps.emplace_back(from, from + micro_batch->own.count);
    loader.release(micro_batch->ticket);
  }
  return steps;
}

TEST(SampleOrder, IsTheSameForALoaderThatGoesOnAndOverRanks) {
  std::vector<double> weights(48);
  std::iota(weights.begin(), weights.end(), 0.0);
  const std::vector<std::shared_ptr<const SampleOrder>> orders{
      weighted_order(weights, 40), balanced_order(Samples(48, 1), 20),
      source_order({{0, 37, 1}, {37, 11, 2}}, EpochEnd::last, {}), shuffled_order(48, {})};
  for (const auto& order : orders) {
    const std::vector<Samples> whole = read_by(order, {}, {});
    Samples expected;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const Samples samples = order->epoch(9, epoch).samples;
      expected.insert(expected.end(), samples.begin(), samples.end());
    }
    Samples read;
    for (const Samples& step : whole) read.insert(read.end(), step.begin(), step.end());
    EXPECT_EQ(read, expected);

    const std::vector<Samples> rest = read_by(order, {1, 12}, {});
    ASSERT_LT(rest.size(), whole.size());
    EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), whole.rbegin()));

    const std::vector<Samples> first = read_by(order, {}, {0, 2}),
                               second = read_by(order, {}, {1, 2});
    ASSERT_EQ(first.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      Samples both = first[i];
      both.insert(both.end(), second[i].begin(), second[i].end());
      EXPECT_EQ(both, whole[i]);
    }
  }
}

}  // namespace
}  // namespace tandem
