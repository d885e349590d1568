// The loader: order, partial batches, micro-batches, resuming, errors, threads.
#include "engine/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

#include "engine/config/keys/config_check.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

std::shared_ptr<const DataSource> counting_source(std::int64_t samples) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(samples));
  std::iota(rows.begin(), rows.end(), 0);
  return make_array_source({{"x", HostTensor::from<std::int64_t>({samples}, rows)}});
}

struct Delivered {
  MicroBatch micro_batch;
  std::vector<std::int64_t> samples;
};

// Runs a loader to its end, or for `limit` micro-batches, over a ring of slots of its own.
std::vector<Delivered> deliver(const std::shared_ptr<const DataSource>& source,
                               LoaderOptions options, std::size_t limit = 1000) {
  options.fields = {0};
  std::vector<std::vector<std::int64_t>> ring(
      static_cast<std::size_t>(options.ahead),
      std::vector<std::int64_t>(static_cast<std::size_t>(options.micro_batch_size)));
  Loader loader(source, options, [&](int, const MicroBatch& micro_batch) {
    return ring[micro_batch.ticket % ring.size()].data();
  });
  std::vector<Delivered> result;
  while (result.size() < limit) {
    const std::optional<MicroBatch> micro_batch = loader.next();
    if (!micro_batch) break;
    EXPECT_EQ(micro_batch->ticket, result.size());
    const auto& slot = ring[micro_batch->ticket % ring.size()];
    result.push_back({*micro_batch, {slot.begin(), slot.begin() + micro_batch->own.count}});
    loader.release(micro_batch->ticket);
  }
  return result;
}

std::vector<std::int64_t> all_samples(const std::vector<Delivered>& micro_batches) {
  std::vector<std::int64_t> samples;
  for (const Delivered& d : micro_batches)
    samples.insert(samples.end(), d.samples.begin(), d.samples.end());
  return samples;
}

TEST(EpochOrder, IsAPermutationOfSeedAndEpoch) {
  using Kind = ShuffleConfig::Kind;
  for (const ShuffleConfig shuffle :
       {ShuffleConfig{Kind::full}, ShuffleConfig{Kind::buffer, 10}, ShuffleConfig{Kind::none}}) {
    const auto order = epoch_order(1000, shuffle, 1, 0);
    EXPECT_EQ(order, epoch_order(1000, shuffle, 1, 0));
    std::vector<std::int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < 1000; ++i) ASSERT_EQ(sorted[static_cast<std::size_t>(i)], i);
    if (shuffle.kind == Kind::none) {
      EXPECT_EQ(order, sorted);
    } else {
      EXPECT_NE(order, epoch_order(1000, shuffle, 1, 1));
      EXPECT_NE(order, epoch_order(1000, shuffle, 2, 0));
    }
    if (shuffle.kind == Kind::buffer) {  // a sample leaves the buffer at most 9 places early
      for (std::size_t i = 0; i < order.size(); ++i) ASSERT_LT(order[i], static_cast<long>(i) + 10);
    }
  }
}

// Chi-square over the place of sample 0: 99 degrees of freedom, 1e-6 quantile about 180.
TEST(EpochOrder, IsUniform) {
  std::vector<int> count(100);
  for (int epoch = 0; epoch < 10000; ++epoch) {
    const auto order = epoch_order(100, {ShuffleConfig::Kind::full}, 3, epoch);
    ++count[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  double chi = 0;
  for (const int c : count) chi += (c - 100.0) * (c - 100.0) / 100;
  EXPECT_LT(chi, 180);
}

TEST(Loader, CoversEachEpochOnceWithAPartialLastBatch) {
  const auto source = counting_source(10);
  for (const int threads : {1, 3}) {
    const auto micro_batches =
        deliver(source, {.batch_size = 4, .micro_batch_size = 4, .epochs = 2, .threads = threads});
    ASSERT_EQ(micro_batches.size(), 6u);
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::int64_t> samples;
      for (int i = 0; i < 3; ++i) {
        const Delivered& d = micro_batches[static_cast<std::size_t>(3 * epoch + i)];
        EXPECT_EQ(d.micro_batch.start, (DataPosition{epoch, 4 * i}));
        EXPECT_EQ(d.micro_batch.count, i < 2 ? 4 : 2);
        EXPECT_EQ(d.micro_batch.step_count, d.micro_batch.count);
        EXPECT_TRUE(d.micro_batch.end_of_step);
        EXPECT_EQ(d.micro_batch.end_of_epoch, i == 2);
        samples.insert(samples.end(), d.samples.begin(), d.samples.end());
      }
      EXPECT_EQ(samples, epoch_order(10, {}, 1, epoch));
    }
    EXPECT_EQ(micro_batches[2].micro_batch.end, (DataPosition{1, 0}));
  }
}

TEST(Loader, ShowsThePassThatComesNext) {
  LoaderOptions options{
      .fields = {0}, .batch_size = 4, .micro_batch_size = 4, .epochs = 1, .ahead = 2};
  std::int64_t ring[2][4];
  Loader loader(counting_source(10), options,
                [&](int, const MicroBatch& micro_batch) { return ring[micro_batch.ticket % 2]; });
  const std::vector<std::int64_t> order = epoch_order(10, {}, 1, 0);
  for (std::uint64_t ticket = 0; ticket < 3; ++ticket) {
    for (int again = 0; again < 2; ++again) {
      const std::optional<MicroBatch> seen = loader.peek();
      ASSERT_TRUE(seen);
      EXPECT_EQ(seen->ticket, ticket);
      EXPECT_EQ(seen->count, ticket < 2 ? 4 : 2);
      for (std::int64_t i = 0; i < seen->count; ++i)
        EXPECT_EQ(ring[ticket % 2][i], order[4 * ticket + static_cast<std::uint64_t>(i)]);
    }
    EXPECT_EQ(loader.next()->ticket, ticket);
    if (ticket > 0) loader.release(ticket - 1);
  }
  EXPECT_FALSE(loader.peek()) << "it was the last one";
  EXPECT_FALSE(loader.next());
}

TEST(Loader, ShowsNothingWhereTheRingIsFull) {
  LoaderOptions options{.fields = {0}, .batch_size = 4, .micro_batch_size = 4, .ahead = 1};
  std::int64_t slot[4];
  Loader loader(counting_source(10), options, [&](int, const MicroBatch&) { return slot; });
  EXPECT_TRUE(loader.peek());
  EXPECT_TRUE(loader.next());
  EXPECT_FALSE(loader.peek());
}

TEST(Loader, DropsThePartialBatch) {
  const auto micro_batches =
      deliver(counting_source(10),
              {.batch_size = 4, .micro_batch_size = 2, .drop_last = true, .epochs = 2});
  ASSERT_EQ(micro_batches.size(), 8u);
  EXPECT_TRUE(micro_batches[3].micro_batch.end_of_epoch);
  EXPECT_EQ(micro_batches[3].micro_batch.end, (DataPosition{1, 0}));
  EXPECT_THROW(
      deliver(counting_source(3), {.batch_size = 4, .micro_batch_size = 4, .drop_last = true}),
      Error);
}

TEST(Loader, MicroBatchesKnowTheirStep) {
  const auto micro_batches =
      deliver(counting_source(11), {.batch_size = 6, .micro_batch_size = 2, .epochs = 1});
  ASSERT_EQ(micro_batches.size(), 6u);
  const std::int64_t counts[] = {2, 2, 2, 2, 2, 1}, steps[] = {6, 6, 6, 5, 5, 5};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(micro_batches[i].micro_batch.count, counts[i]);
    EXPECT_EQ(micro_batches[i].micro_batch.step_count, steps[i]);
    EXPECT_EQ(micro_batches[i].micro_batch.index, static_cast<std::int64_t>(i % 3));
    EXPECT_EQ(micro_batches[i].micro_batch.end_of_step, i % 3 == 2);
  }
}

TEST(Loader, ResumesExactlyAtEveryStep) {
  const auto source = counting_source(23);
  const LoaderOptions options{.batch_size = 6, .micro_batch_size = 3, .epochs = 3, .threads = 2};
  const auto whole = deliver(source, options);
  for (std::size_t stop = 0; stop < whole.size(); ++stop) {
    if (!whole[stop].micro_batch.end_of_step) continue;
    LoaderOptions rest = options;
    rest.start = whole[stop].micro_batch.end;
    const auto resumed = deliver(source, rest);
    ASSERT_EQ(resumed.size(), whole.size() - stop - 1);
    for (std::size_t i = 0; i < resumed.size(); ++i) {
      EXPECT_EQ(resumed[i].samples, whole[stop + 1 + i].samples);
      EXPECT_EQ(resumed[i].micro_batch.step_count, whole[stop + 1 + i].micro_batch.step_count);
    }
  }
  // Another batch size continues at the same sample and still covers the epoch once.
  LoaderOptions other{.batch_size = 5, .micro_batch_size = 5, .start = {0, 12}, .epochs = 1};
  const auto rest = deliver(source, other);
  const auto order = epoch_order(23, {}, 1, 0);
  EXPECT_EQ(all_samples(rest), std::vector<std::int64_t>(order.begin() + 12, order.end()));
}

// Through several batch sizes, each starting where the one before stopped.
TEST(Loader, StepsLeadWhereTheirPassesLead) {
  for (const bool drop_last : {false, true}) {
    for (const std::int64_t samples : {8, 9, 22, 23}) {
      LoaderOptions options;
      options.drop_last = drop_last;
      DataPosition at;
      for (const std::int64_t batch : {4, 8, 3, 8, 1, 5}) {
        options.batch_size = options.micro_batch_size = batch;
        options.start = at;
        std::uint64_t seen = 0;
        for (std::uint64_t steps = 0; steps < 11; ++steps) {
          const auto taken = after_steps(options.start, steps, samples, batch, drop_last);
          ASSERT_TRUE(taken);
          EXPECT_EQ(taken->end, at) << samples << " by " << batch << " step " << steps;
          EXPECT_EQ(taken->samples, seen);
          const std::optional<MicroBatch> micro_batch = micro_batch_at(at, samples, options);
          ASSERT_TRUE(micro_batch && micro_batch->end_of_step);
          at = micro_batch->end;
          seen += static_cast<std::uint64_t>(micro_batch->count);
        }
      }
    }
  }
  EXPECT_FALSE(after_steps({}, 1, 3, 4, true));
  EXPECT_FALSE(after_steps({0, 9}, 0, 9, 4, false));
  const auto far = after_steps({}, 1'000'000'000'000'000, std::int64_t{1} << 40, 1, false);
  ASSERT_TRUE(far);
  EXPECT_EQ(far->samples, 1'000'000'000'000'000u);
  EXPECT_EQ(far->end, (DataPosition{909, 1'000'000'000'000'000 - 909 * (std::int64_t{1} << 40)}));
  EXPECT_FALSE(after_steps({}, 1'000'000'000'000'000, std::int64_t{1} << 40, 1LL << 40, false));
}

TEST(Loader, EvaluationReadsEverySampleOnceInOrder) {
  const auto micro_batches = deliver(counting_source(7), {.batch_size = 3,
                                                          .micro_batch_size = 3,
                                                          .shuffle = {ShuffleConfig::Kind::none},
                                                          .augment = false,
                                                          .epochs = 1});
  EXPECT_EQ(all_samples(micro_batches), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Loader, ManyThreadsDeliverTheSame) {
  const auto source = counting_source(1001);
  const LoaderOptions one{.batch_size = 8, .micro_batch_size = 8, .epochs = 3};
  LoaderOptions many = one;
  many.threads = 4;
  many.ahead = 7;
  EXPECT_EQ(all_samples(deliver(source, one)), all_samples(deliver(source, many)));
}

/// Samples, each of which waits until two are being read at once.
class MeetingSource final : public DataSource {
 public:
  const std::vector<DataField>& fields() const override { return fields_; }
  std::int64_t samples() const override { return 8; }
  void fill(int, std::span<const std::int64_t> samples, const Augmentation*,
            void* to) const override {
    {
      std::unique_lock lock(mutex_);
      ++under_way_;
      changed_.notify_all();
      met_ |= changed_.wait_for(lock, std::chrono::seconds(20), [&] { return under_way_ >= 2; });
    }
    for (std::size_t i = 0; i < samples.size(); ++i) static_cast<std::int64_t*>(to)[i] = samples[i];
  }
  std::string describe(int, std::int64_t) const override { return ""; }
  void check_range(int, std::int64_t, const std::int64_t*) const override {}
  void check_numbers(int, double, double, const std::string&) const override {}
  bool met() const { return met_; }

 private:
  std::vector<DataField> fields_{{"x", TensorType{DType::int64, {}}}};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int under_way_ = 0;  // or done
  mutable bool met_ = false;
};

TEST(Loader, ThreadsFillAMicroBatchTogether) {
  const auto source = std::make_shared<MeetingSource>();
  std::vector<std::int64_t> slot(8);
  Loader loader(source,
                {.fields = {0},
                 .batch_size = 8,
                 .micro_batch_size = 8,
                 .shuffle = {ShuffleConfig::Kind::none},
                 .epochs = 1,
                 .threads = 2,
                 .ahead = 1},
                [&](int, const MicroBatch&) { return slot.data(); });
  ASSERT_TRUE(loader.next());
  EXPECT_TRUE(source->met());
  EXPECT_EQ(slot, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// The reported error is that of the first sample that has one, whichever thread is faster.
TEST(Loader, TellsTheFirstErrorOfAMicroBatch) {
  FieldConfig field{.name = "y", .from = "x"};
  field.as.push_back(parse_transform("one_hot(5)"));
  std::vector<std::int64_t> classes(64, 9);
  classes[0] = 1;
  const auto source =
      make_array_source({{"x", HostTensor::from<std::int64_t>({64}, classes)}}, {field});
  std::vector<float> slot(64 * 5);
  for (int again = 0; again < 20; ++again) {
    Loader loader(source,
                  {.fields = {0},
                   .batch_size = 64,
                   .micro_batch_size = 64,
                   .shuffle = {ShuffleConfig::Kind::none},
                   .threads = 4,
                   .ahead = 1},
                  [&](int, const MicroBatch&) { return slot.data(); });
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics()[0].line, 2);
    }
  }
}

TEST(ShareOf, SharesFollowEachOtherAndDifferByOne) {
  EXPECT_EQ(share_of(10, {0, 1}), (SampleShare{0, 10}));
  EXPECT_EQ(share_of(10, {0, 4}), (SampleShare{0, 3}));
  EXPECT_EQ(share_of(10, {1, 4}), (SampleShare{3, 3}));
  EXPECT_EQ(share_of(10, {2, 4}), (SampleShare{6, 2}));
  EXPECT_EQ(share_of(10, {3, 4}), (SampleShare{8, 2}));
  EXPECT_EQ(share_of(2, {2, 3}), (SampleShare{2, 0}));
}

// The ranks' shares of each micro-batch, one after the other, are what one process gets; all ranks
// have the same places, steps and tickets.
TEST(Loader, RanksShareEachMicroBatch) {
  const auto source = counting_source(23);  // steps of 8, 8 and 7 samples in micro-batches of 4
  const LoaderOptions options{.batch_size = 8, .micro_batch_size = 4, .seed = 5, .epochs = 2};
  const auto whole = deliver(source, options);
  ASSERT_EQ(whole.size(), 12u);
  for (const int ranks : {2, 3}) {
    std::vector<std::vector<std::int64_t>> joined(whole.size());
    for (int rank = 0; rank < ranks; ++rank) {
      LoaderOptions own = options;
      own.place = {rank, ranks};
      const auto share = deliver(source, own);
      ASSERT_EQ(share.size(), whole.size());
      for (std::size_t i = 0; i < share.size(); ++i) {
        const MicroBatch &mine = share[i].micro_batch, &all = whole[i].micro_batch;
        EXPECT_EQ(mine.own, share_of(all.count, {rank, ranks}));
        EXPECT_EQ(mine.start, all.start);
        EXPECT_EQ(mine.end, all.end);
        EXPECT_EQ(mine.count, all.count);
        EXPECT_EQ(mine.step_count, all.step_count);
        EXPECT_EQ(mine.end_of_step, all.end_of_step);
        joined[i].insert(joined[i].end(), share[i].samples.begin(), share[i].samples.end());
      }
    }
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(joined[i], whole[i].samples);
  }
}

TEST(Loader, NeverTouchesUnreleasedSlots) {
  const auto source = counting_source(100);
  std::vector<std::int64_t> ring(2, -1);
  Loader loader(source, {.fields = {0}, .threads = 2, .ahead = 2},
                [&](int, const MicroBatch& micro_batch) { return &ring[micro_batch.ticket % 2]; });
  loader.next();
  const auto second = loader.next();
  const std::int64_t held[] = {ring[0], ring[1]};
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(ring[0], held[0]);
  EXPECT_EQ(ring[1], held[1]);
  loader.release(second->ticket);
  EXPECT_EQ(loader.next()->ticket, 2u);
  EXPECT_GE(loader.waited(), 0);
}

TEST(Loader, StopsWhileThreadsWait) {
  const auto source = counting_source(100);
  std::vector<std::int64_t> ring(3);
  for (int i = 0; i < 20; ++i) {
    Loader loader(source, {.fields = {0}, .threads = 3}, [&](int, const MicroBatch& micro_batch) {
      return &ring[micro_batch.ticket % 3];
    });
    if (i % 2) loader.next();
  }
}

TEST(Loader, CarriesErrorsToTheStepTheyBelongTo) {
  FieldConfig field{.name = "y", .from = "x"};
  field.as.push_back(parse_transform("one_hot(5)"));
  const auto source =
      make_array_source({{"x", HostTensor::from<std::int64_t>({6}, {0, 1, 2, 3, 4, 5})}}, {field});
  std::vector<float> ring(3 * 5);
  Loader loader(
      source, {.fields = {0}, .shuffle = {ShuffleConfig::Kind::none}, .threads = 2},
      [&](int, const MicroBatch& micro_batch) { return &ring[micro_batch.ticket % 3 * 5]; });
  for (int i = 0; i < 5; ++i) loader.release(loader.next()->ticket);
  for (int i = 0; i < 2; ++i) {
    try {
      loader.next();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_EQ(error.diagnostics()[0].line, 6);
    }
  }
}

}  // namespace
}  // namespace tandem
