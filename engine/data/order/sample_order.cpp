#include "engine/data/order/sample_order.h"

#include <numeric>
#include <utility>

#include "engine/data/random.h"

namespace tandem {

std::vector<std::int64_t> epoch_order(std::int64_t samples, const ShuffleConfig& shuffle,
                                      std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  RandomStream random(mix(seed, static_cast<std::uint64_t>(epoch)));
  if (shuffle.kind == ShuffleConfig::Kind::none) return order;
  if (shuffle.kind == ShuffleConfig::Kind::full || shuffle.buffer >= samples) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    return order;
  }
  // A buffer of samples in reading order: each draw leaves a place for the next sample read.
  std::vector<std::int64_t> buffer(order.begin(), order.begin() + shuffle.buffer);
  std::int64_t next = shuffle.buffer;
  for (std::int64_t& drawn : order) {
    const std::size_t at = random.below(buffer.size());
    drawn = buffer[at];
    if (next < samples) {
      buffer[at] = next++;
    } else {
      buffer[at] = buffer.back();
      buffer.pop_back();
    }
  }
  return order;
}

namespace {

class ShuffledOrder final : public SampleOrder {
 public:
  ShuffledOrder(std::int64_t samples, const ShuffleConfig& shuffle)
      : samples_(samples), shuffle_(shuffle) {}

  std::int64_t count() const override { return samples_; }
  EpochSamples epoch(std::uint64_t seed, std::int64_t epoch) const override {
    return {epoch_order(samples_, shuffle_, seed, epoch), {}, {}};
  }

 private:
  std::int64_t samples_;
  ShuffleConfig shuffle_;
};

}  // namespace

std::shared_ptr<const SampleOrder> shuffled_order(std::int64_t samples,
                                                  const ShuffleConfig& shuffle) {
  return std::make_shared<ShuffledOrder>(samples, shuffle);
}

std::vector<std::uint32_t> repeats_in(const std::vector<std::int64_t>& order,
                                      std::int64_t samples) {
  std::vector<std::uint32_t> times(static_cast<std::size_t>(samples)), repeats;
  repeats.reserve(order.size());
  for (const std::int64_t sample : order)
    repeats.push_back(times[static_cast<std::size_t>(sample)]++);
  return repeats;
}

OpenEpochs::OpenEpochs(std::shared_ptr<const SampleOrder> order, std::uint64_t seed)
    : order_(std::move(order)), seed_(seed) {}

std::shared_ptr<const EpochSamples> OpenEpochs::of(std::int64_t epoch) {
  const std::lock_guard lock(mutex_);
  const std::size_t place = static_cast<std::size_t>(epoch & 1);
  if (epochs_[place] != epoch) {
    samples_[place] = std::make_shared<const EpochSamples>(order_->epoch(seed_, epoch));
    epochs_[place] = epoch;
  }
  return samples_[place];
}

}  // namespace tandem
