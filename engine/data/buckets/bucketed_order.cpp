#include "engine/data/buckets/bucketed_order.h"

#include <utility>

#include "engine/data/random.h"

namespace tandem {
namespace {

/// Places of the order below, and the bucket that they are filled up to.
struct BucketStep {
  std::vector<std::size_t> places;
  std::size_t bucket = 0;
};

class BucketedOrder final : public SampleOrder {
 public:
  BucketedOrder(std::shared_ptr<const SampleOrder> order, std::shared_ptr<const Buckets> buckets,
                std::int64_t batch_size, bool mixes)
      : order_(std::move(order)),
        buckets_(std::move(buckets)),
        batch_(static_cast<std::size_t>(batch_size)),
        mixes_(mixes) {}

  std::int64_t count() const override { return order_->count(); }

  EpochSamples epoch(std::uint64_t seed, std::int64_t epoch) const override {
    const EpochSamples from = order_->epoch(seed, epoch);
    std::vector<BucketStep> steps;
    std::vector<std::vector<std::size_t>> open(buckets_->lengths.size());
    const auto add = [&](std::size_t bucket, std::size_t place) {
      open[bucket].push_back(place);
      if (open[bucket].size() == batch_) steps.push_back({std::exchange(open[bucket], {}), bucket});
    };
    for (std::size_t place = 0; place < from.samples.size(); ++place)
      add(buckets_->of_samples[static_cast<std::size_t>(from.samples[place])], place);
    for (std::size_t bucket = 0; bucket + 1 < open.size(); ++bucket) {
      for (const std::size_t place : std::exchange(open[bucket], {})) add(bucket + 1, place);
    }
    if (mixes_) mix_steps(steps, seed, epoch);
    if (!open.back().empty()) steps.push_back({std::move(open.back()), open.size() - 1});

    EpochSamples result;
    for (const BucketStep& step : steps) {
      result.lengths.push_back(buckets_->lengths[step.bucket]);
      for (const std::size_t place : step.places) {
        result.samples.push_back(from.samples[place]);
        // A sample that is read again carries its number along: which of them is first does not
        // matter.
        if (!from.repeats.empty()) result.repeats.push_back(from.repeats[place]);
      }
    }
    return result;
  }

 private:
  static void mix_steps(std::vector<BucketStep>& steps, std::uint64_t seed, std::int64_t epoch) {
    constexpr std::uint64_t steps_key = 0x7374657073;
    RandomStream random(mix(mix(seed, static_cast<std::uint64_t>(epoch)), steps_key));
    for (std::size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[random.below(i)]);
  }

  std::shared_ptr<const SampleOrder> order_;
  std::shared_ptr<const Buckets> buckets_;
  std::size_t batch_;
  bool mixes_;
};

}  // namespace

std::shared_ptr<const SampleOrder> bucketed_order(std::shared_ptr<const SampleOrder> order,
                                                  std::shared_ptr<const Buckets> buckets,
                                                  std::int64_t batch_size, bool mixes) {
  return std::make_shared<BucketedOrder>(std::move(order), std::move(buckets), batch_size, mixes);
}

}  // namespace tandem
