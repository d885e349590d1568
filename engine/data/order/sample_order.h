// Which samples an epoch reads, and in which order: a pure function of seed and epoch, so that a
// resumed run, and any number of ranks, read the same.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/config/data_config.h"

namespace tandem {

/// The samples of one epoch in the order in which they are read: a pure function of (seed, epoch).
std::vector<std::int64_t> epoch_order(std::int64_t samples, const ShuffleConfig& shuffle,
                                      std::uint64_t seed, std::int64_t epoch);

struct EpochSamples {
  std::vector<std::int64_t> samples;  // by their place in the epoch
  /// By place: how often the sample has come before it in this epoch. Empty: each comes once.
  std::vector<std::uint32_t> repeats;
  /// By optimizer step: the length of its bucket. Empty: there are no buckets.
  std::vector<std::int64_t> lengths;
};

/// Immutable: any number of threads may ask.
class SampleOrder {
 public:
  virtual ~SampleOrder() = default;
  /// Places of each epoch.
  virtual std::int64_t count() const = 0;
  virtual EpochSamples epoch(std::uint64_t seed, std::int64_t epoch) const = 0;
};

/// Each sample once an epoch.
std::shared_ptr<const SampleOrder> shuffled_order(std::int64_t samples,
                                                  const ShuffleConfig& shuffle);

/// `EpochSamples::repeats` of samples below `samples`.
std::vector<std::uint32_t> repeats_in(const std::vector<std::int64_t>& order, std::int64_t samples);

/// The current epochs, two at most, each computed once. Any thread may ask.
class OpenEpochs {
 public:
  OpenEpochs(std::shared_ptr<const SampleOrder> order, std::uint64_t seed);
  std::int64_t count() const { return order_->count(); }
  std::shared_ptr<const EpochSamples> of(std::int64_t epoch);

 private:
  std::shared_ptr<const SampleOrder> order_;
  std::uint64_t seed_;
  std::mutex mutex_;  // guards what follows
  std::int64_t epochs_[2] = {-1, -1};
  std::shared_ptr<const EpochSamples> samples_[2];
};

}  // namespace tandem
