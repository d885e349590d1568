// data.buckets: the lengths of samples, the order of their steps, and what is cut.
#include "engine/data/buckets/buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>

#include "engine/data/buckets/bucketed_order.h"
#include "engine/data/buckets/cut_source.h"
#include "engine/data/buckets/sequence_length.h"
#include "engine/data/loader.h"
#include "engine/data/order/drawn_order.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using testing::data_config;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::ids_of;
using Samples = std::vector<std::int64_t>;

constexpr std::int64_t longest = 8;

/// Sample i has the tokens i + 1, i + 1, …, as many as `lengths` says, and zeros; `twice` has them
/// as pairs.
std::shared_ptr<const DataSource> sequences(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> tokens, labels;
  std::vector<float> twice;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::int64_t k = 0; k < longest; ++k) {
      const std::int64_t id = k < lengths[i] ? static_cast<std::int64_t>(i) + 1 : 0;
      tokens.push_back(id);
      twice.insert(twice.end(), 2, static_cast<float>(id));
    }
    labels.push_back(static_cast<std::int64_t>(i));
  }
  const auto count = static_cast<std::int64_t>(lengths.size());
  return make_array_source({{"tokens", HostTensor::from<std::int64_t>({count, longest}, tokens)},
                            {"twice", HostTensor::from<float>({count, longest, 2}, twice)},
                            {"label", HostTensor::from<std::int64_t>({count}, labels)}});
}

BucketConfig in_buckets(std::vector<std::int64_t> lengths, const std::string& field = "tokens") {
  BucketConfig config;
  config.field = field;
  config.lengths = std::move(lengths);
  config.dimension = "sequence";
  return config;
}

std::shared_ptr<const Buckets> buckets_of(const std::vector<std::int64_t>& lengths,
                                          const BucketConfig& config) {
  DataSets sets{sequences(lengths), nullptr, {}};
  add_buckets(config, sets);
  return sets.buckets;
}

TEST(SequenceLength, EndsBehindTheLastValueThatIsNotPad) {
  const auto of = [](const std::vector<std::int64_t>& values, const Shape& shape,
                     std::int64_t pad) {
    return sequence_length({DType::int64, shape}, values.data(), pad);
  };
  EXPECT_EQ(of({5, 0, 7, 0, 0, 0}, {6}, 0), 3);
  EXPECT_EQ(of({0, 0, 0, 0, 0, 0}, {6}, 0), 0);
  EXPECT_EQ(of({0, 0, 0, 0, 0, 0}, {6}, 9), 6);
  EXPECT_EQ(of({9, 9, 9, 3, 9, 9}, {3, 2}, 9), 2);
  const float x[] = {0, 0.5f, 0, 0};
  EXPECT_EQ(sequence_length({DType::float32, {4}}, x, 0), 2);
}

TEST(Buckets, ASampleIsInTheFirstThatHoldsIt) {
  const auto buckets = buckets_of({0, 1, 3, 4, 5, 8}, in_buckets({3, 4, 8}));
  EXPECT_THAT(buckets->of_samples, ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(buckets->fields, ElementsAre(0, 1));  // not the label
  EXPECT_EQ(to_string(*buckets), "3 samples up to 3, 1 up to 4, 2 up to 8");
  BucketConfig some = in_buckets({4, 8}, "twice");
  some.fields = {"twice"};
  EXPECT_THAT(buckets_of({1, 8}, some)->fields, ElementsAre(1));
}

TEST(Buckets, MistakesAreNamed) {
  const auto refusal = [](const BucketConfig& config) {
    return error_of([&] { buckets_of({1, 2}, config); });
  };
  EXPECT_THAT(refusal(in_buckets({4, 8}, "token")),
              AllOf(HasSubstr("there is no data field \"token\""), HasSubstr("did you mean")));
  EXPECT_THAT(refusal(in_buckets({4, 7})),
              AllOf(HasSubstr("the last bucket is not as long as the samples"), HasSubstr("8")));
  EXPECT_THAT(refusal(in_buckets({4, 8}, "label")), HasSubstr("are no sequences"));
  BucketConfig other = in_buckets({4, 8});
  other.fields = {"tokens", "label"};
  EXPECT_THAT(refusal(other), HasSubstr("\"label\" is not as long"));
}

TEST(CutSource, KeepsTheFirstValuesOfItsFields) {
  const auto source = sequences({2, 8, 3});
  const auto cut = cut_source(source, {0, 1}, 3);
  EXPECT_EQ(cut->fields()[0].sample.shape, (Shape{3}));
  EXPECT_EQ(cut->fields()[1].sample.shape, (Shape{3, 2}));
  EXPECT_EQ(cut->fields()[2].sample, source->fields()[2].sample);
  std::vector<std::int64_t> tokens(6), labels(2);
  std::vector<float> twice(12);
  const Samples samples{2, 0};
  cut->fill(0, samples, nullptr, tokens.data());
  cut->fill(1, samples, nullptr, twice.data());
  cut->fill(2, samples, nullptr, labels.data());
  EXPECT_THAT(tokens, ElementsAre(3, 3, 3, 1, 1, 0));
  EXPECT_THAT(twice, ElementsAre(3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 0, 0));
  EXPECT_THAT(labels, ElementsAre(2, 0));
  EXPECT_EQ(cut_source(source, {0, 1}, longest), source);
}

/// 100 samples of lengths 1 to 8.
std::vector<std::int64_t> many_lengths() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 100; ++i) lengths.push_back(i * 7 % 8 + 1);
  return lengths;
}

TEST(BucketedOrder, AStepIsOfOneBucketAndOnlyTheLastOneIsSmall) {
  const std::vector<std::int64_t> lengths = many_lengths();
  const auto buckets = buckets_of(lengths, in_buckets({2, 5, 8}));
  const auto order = bucketed_order(shuffled_order(100, {}), buckets, 8, true);
  EXPECT_EQ(order->count(), 100);
  std::set<std::vector<std::int64_t>> orders_of_lengths;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    const EpochSamples samples = order->epoch(1, epoch);
    ASSERT_EQ(samples.lengths.size(), 13u);
    EXPECT_EQ(samples.lengths.back(), 8);  // four samples
    orders_of_lengths.insert(samples.lengths);
    int of_short = 0;
    for (std::size_t place = 0; place < samples.samples.size(); ++place) {
      const std::int64_t length = lengths[static_cast<std::size_t>(samples.samples[place])];
      ASSERT_LE(length, samples.lengths[place / 8]);
      of_short += samples.lengths[place / 8] == 2 ? 1 : 0;
    }
    EXPECT_EQ(of_short, 24);  // 25 are so short, but one goes into the next bucket
    Samples sorted = samples.samples;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < 100; ++i) ASSERT_EQ(sorted[static_cast<std::size_t>(i)], i);
  }
  EXPECT_GT(orders_of_lengths.size(), 1u);
}

TEST(BucketedOrder, KeepsTheOrderWithinABucketWhereNothingIsShuffled) {
  const auto buckets = buckets_of({1, 8, 1, 8, 1, 8, 1, 8, 1}, in_buckets({4, 8}));
  const auto order =
      bucketed_order(shuffled_order(9, {ShuffleConfig::Kind::none}), buckets, 2, false);
  const EpochSamples samples = order->epoch(1, 0);
  EXPECT_THAT(samples.samples, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7, 8));
  EXPECT_THAT(samples.lengths, ElementsAre(4, 8, 4, 8, 8));
}

TEST(BucketedOrder, CarriesRepeatsAlong) {
  const auto buckets = buckets_of(many_lengths(), in_buckets({4, 8}));
  const auto drawn = weighted_order(std::vector<double>(100, 1.0), 50);
  const EpochSamples samples = bucketed_order(drawn, buckets, 4, true)->epoch(1, 0);
  ASSERT_EQ(samples.repeats.size(), 50u);
  std::set<std::pair<std::int64_t, std::uint32_t>> different;
  for (std::size_t i = 0; i < 50; ++i) different.insert({samples.samples[i], samples.repeats[i]});
  EXPECT_EQ(different.size(), 50u);
}

/// By step: its length, and the tokens of the samples at that length.
using Steps = std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>;

Steps loaded(DataPosition start, const RankPlace& place) {
  const auto source = sequences(many_lengths());
  const auto buckets = buckets_of(many_lengths(), in_buckets({2, 5, 8}));
  LoaderOptions options{.fields = {0}, .batch_size = 8, .micro_batch_size = 4};
  options.order =
      std::make_shared<OpenEpochs>(bucketed_order(shuffled_order(100, {}), buckets, 8, true), 3);
  for (const std::int64_t length : buckets->lengths)
    options.buckets[length] = cut_source(source, buckets->fields, length);
  options.seed = 3;
  options.start = start;
  options.epochs = 2;
  options.threads = 2;
  options.place = place;
  std::int64_t ring[3][4 * longest];
  Loader loader(source, options,
                [&](int, const MicroBatch& micro_batch) { return ring[micro_batch.ticket % 3]; });
  Steps steps;
  while (const std::optional<MicroBatch> micro_batch = loader.next()) {
    const std::int64_t* const from = ring[micro_batch->ticket % 3];
    if (micro_batch->index == 0) steps.push_back({micro_batch->length, {}});
    EXPECT_EQ(micro_batch->length, steps.back().first);
    steps.back().second.insert(steps.back().second.end(), from,
                               from + micro_batch->own.count * micro_batch->length);
    loader.release(micro_batch->ticket);
  }
  return steps;
}

TEST(BucketedOrder, ALoaderGoesOnAndSharesWithinTheSameSteps) {
  const Steps whole = loaded({}, {});
  ASSERT_EQ(whole.size(), 26u);
  const Steps rest = loaded({1, 40}, {});
  ASSERT_EQ(rest.size(), 8u);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.end() - 8));
  const Steps first = loaded({}, {0, 2}), second = loaded({}, {1, 2});
  ASSERT_EQ(first.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(first[i].first, whole[i].first);
    EXPECT_EQ(second[i].first, whole[i].first);
    EXPECT_EQ(first[i].second.size() + second[i].second.size(), whole[i].second.size());
  }
}

TEST(Buckets, OfAConfigurationWithAMask) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "a.jsonl") << "{\"ids\": [4, 5]}\n{\"ids\": [6]}\n{\"ids\": [7, 8, 9]}\n";
  const std::string fields =
      "fields = { ids = { from = 'ids', as = ['split(\",\", max=4)', 'int64'] }, mask = { from = "
      "'ids', as = ['split(\",\", max=4)', 'int64', 'mask'] } }\n";
  const std::string head = "kind = 'jsonl'\ntrain = { files = ['a.jsonl'] }\n" + fields;
  const DataSets sets = open_data(data_config(
      folder, head + "buckets = { field = 'ids', lengths = [2, 4], dimension = 'sequence' }\n"));
  EXPECT_THAT(sets.buckets->of_samples, ElementsAre(0, 0, 1));
  EXPECT_THAT(sets.buckets->fields, ElementsAre(0, 1));
  EXPECT_EQ(ids_of(*sets.train, "mask", 2), (std::vector<std::int64_t>{1, 1, 1, 0}));
  EXPECT_EQ(ids_of(*sets.train, "mask", 1), (std::vector<std::int64_t>{1, 0, 0, 0}));

  const auto mistake = [&](const std::string& buckets) {
    return error_of([&] { data_config(folder, head + "buckets = { " + buckets + " }\n"); });
  };
  EXPECT_THAT(mistake("field = 'ids', lengths = [4, 2], dimension = 's'"),
              HasSubstr("lengths do not ascend"));
  EXPECT_THAT(mistake("field = 'ids', lengths = [], dimension = 's'"),
              HasSubstr("no length is named"));
  EXPECT_THAT(mistake("field = 'ids', lengths = [2, 4]"), HasSubstr("dimension"));
  // A flip puts the padding first.
  const std::string flipped =
      "kind = 'jsonl'\ntrain = { files = ['a.jsonl'] }\nfields = { ids = { from = 'ids', as = "
      "['split(\",\", max=4)', 'int64'], augment = ['random_flip'] } }\n"
      "buckets = { field = 'ids', lengths = [2, 4], dimension = 's' }\n";
  EXPECT_THAT(error_of([&] { open_data(data_config(folder, flipped)); }),
              AllOf(HasSubstr("data.fields.ids.augment"), HasSubstr("random_flip")));
}

}  // namespace
}  // namespace tandem
