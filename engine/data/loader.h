// Reads a data source in batches, ahead of the step, in threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/data/order/sample_order.h"
#include "engine/formats/stage_clock.h"

namespace tandem {

/// A place in the data; resuming from it continues exactly.
struct DataPosition {
  std::int64_t epoch = 0;   // from 0
  std::int64_t sample = 0;  // samples of this epoch already used
  bool operator==(const DataPosition&) const = default;
};

/// Consecutive samples of a micro-batch or of a data set, counted from its first.
struct SampleShare {
  std::int64_t first = 0, count = 0;
  bool operator==(const SampleShare&) const = default;
};

/// One process of those that train together.
struct RankPlace {
  int rank = 0, ranks = 1;
};

/// What a rank computes of that many samples: the shares of all ranks, in order, make up the
/// samples, and the first count % ranks of them have one more than the others.
SampleShare share_of(std::int64_t count, const RankPlace& place);

/// A micro-batch of an optimizer step, as all ranks compute it together: one run of the graph.
struct MicroBatch {
  std::uint64_t ticket = 0;     // 0, 1, ... in the order of delivery
  DataPosition start;           // position of its first sample
  DataPosition end;             // after it: what a checkpoint stores when end_of_step
  std::int64_t count = 0;       // samples; below micro_batch_size in the last one of an epoch
  SampleShare own;              // the samples that this rank computes
  std::int64_t index = 0;       // its number within the optimizer step
  std::int64_t step_count = 0;  // samples of its whole optimizer step
  std::int64_t length = 0;      // length of its bucket; 0: there are none
  bool end_of_step = false;
  bool end_of_epoch = false;
};

/// Seconds of all threads of a loader, by stage.
class LoadTimes {
 public:
  void add(const StageClock::Seconds& seconds);
  StageClock::Seconds seconds() const;

 private:
  mutable std::mutex mutex_;
  StageClock::Seconds seconds_{};  // guarded by mutex_
};

struct LoaderOptions {
  /// Indices into the source's fields; the slot function gets positions in this list.
  std::vector<int> fields;
  std::int64_t batch_size = 1;        // samples an optimizer step
  std::int64_t micro_batch_size = 1;  // samples a micro-batch; divides batch_size
  bool drop_last = false;             // leave out the partial optimizer step at the end of an epoch
  ShuffleConfig shuffle;
  /// Drawn with this seed; null: a shuffle of the source's samples.
  std::shared_ptr<OpenEpochs> order;
  /// By length: the source that samples of a bucket are read from in place of the whole source;
  /// used with an order that has lengths.
  std::map<std::int64_t, std::shared_ptr<const DataSource>> buckets;
  bool augment = true;
  std::uint64_t seed = 1;
  DataPosition start;        // at the boundary of an optimizer step
  std::int64_t epochs = -1;  // ends before this epoch number; -1 = never
  int threads = 1;
  int ahead = 3;               // micro-batches filled and not released, at most: the ring of slots
  LoadTimes* times = nullptr;  // adds what threads spend in each stage, where it is wanted
  RankPlace place;  // sizes and positions above are those of all ranks, slots get its share
};

/// Steps in one epoch.
std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch_size, bool drop_last);
/// The micro-batch that starts at a position (ticket 0), a pure function; nothing where the run
/// ends there.
std::optional<MicroBatch> micro_batch_at(DataPosition start, std::int64_t samples,
                                         const LoaderOptions& options);

/// Where this many steps of this batch size lead, and how many samples they take: the result of
/// going through the micro-batches with micro_batch_at. Nothing where an epoch has no batch or
/// numbers grow too large.
struct StepsTaken {
  DataPosition end;
  std::uint64_t samples = 0;
};
std::optional<StepsTaken> after_steps(DataPosition start, std::uint64_t steps, std::int64_t samples,
                                      std::int64_t batch_size, bool drop_last);

class Loader {
 public:
  /// Where micro_batch.own.count samples of options.fields[field] go. Called from loader threads,
  /// at most once per (field, ticket), only while fewer than `ahead` micro-batches are unreleased.
  /// All threads fill a micro-batch together, each some of its samples.
  using SlotFunction = std::function<void*(int field, const MicroBatch& micro_batch)>;

  Loader(std::shared_ptr<const DataSource> source, LoaderOptions options, SlotFunction slot);
  /// Stops the threads; fills under way are finished first.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next micro-batch in order, once its slots are filled; nothing after the last. Rethrows
  /// what a fill threw. Allocates nothing.
  std::optional<MicroBatch> next();
  /// The micro-batch that `next` will return, once its slots are filled; `next` still returns it.
  /// Nothing where there is none, where its fill failed, or where the ring cannot hold it in
  /// addition to the micro-batches that are not released.
  std::optional<MicroBatch> peek();
  /// Slots of all micro-batches up to this ticket may be written again.
  void release(std::uint64_t ticket);
  /// Seconds that `next` and `peek` have waited so far.
  double waited() const;

 private:
  void stop();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
