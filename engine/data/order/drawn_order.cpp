#include "engine/data/order/drawn_order.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "engine/data/random.h"

namespace tandem {
namespace {

/// Random numbers for one place of an epoch.
RandomStream draws_at(std::uint64_t seed, std::int64_t epoch, std::int64_t place) {
  constexpr std::uint64_t draw_key = 0x64726177;
  return RandomStream(
      mix(mix(mix(seed, static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(place)),
          draw_key));
}

class DrawnOrder : public SampleOrder {
 public:
  DrawnOrder(std::int64_t samples, std::int64_t count) : samples_(samples), count_(count) {}

  std::int64_t count() const final { return count_; }
  EpochSamples epoch(std::uint64_t seed, std::int64_t epoch) const final {
    EpochSamples drawn;
    drawn.samples.resize(static_cast<std::size_t>(count_));
    for (std::int64_t place = 0; place < count_; ++place)
      drawn.samples[static_cast<std::size_t>(place)] = draw(draws_at(seed, epoch, place));
    drawn.repeats = repeats_in(drawn.samples, samples_);
    return drawn;
  }

 private:
  virtual std::int64_t draw(RandomStream random) const = 0;

  std::int64_t samples_, count_;
};

class WeightedOrder final : public DrawnOrder {
 public:
  WeightedOrder(const std::vector<double>& weights, std::int64_t count)
      : DrawnOrder(static_cast<std::int64_t>(weights.size()), count) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      sum += weights[i];
      sums_.push_back(sum);
      samples_.push_back(static_cast<std::int64_t>(i));
    }
    assert(!sums_.empty());
  }

 private:
  std::int64_t draw(RandomStream random) const override {
    const double at = random.uniform() * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
    // Rounded up, a number may reach the whole sum.
    const auto last = static_cast<std::ptrdiff_t>(samples_.size()) - 1;
    return samples_[static_cast<std::size_t>(std::min(found - sums_.begin(), last))];
  }

  std::vector<double> sums_;           // running sums of the weights
  std::vector<std::int64_t> samples_;  // those with weights above 0
};

class BalancedOrder final : public DrawnOrder {
 public:
  BalancedOrder(const std::vector<std::int64_t>& classes, std::int64_t count)
      : DrawnOrder(static_cast<std::int64_t>(classes.size()), count) {
    std::map<std::int64_t, std::vector<std::int64_t>> by_class;
    for (std::size_t i = 0; i < classes.size(); ++i)
      by_class[classes[i]].push_back(static_cast<std::int64_t>(i));
    for (auto& [number, samples] : by_class) samples_.push_back(std::move(samples));
    assert(!samples_.empty());
  }

 private:
  std::int64_t draw(RandomStream random) const override {
    const std::vector<std::int64_t>& of_class = samples_[random.below(samples_.size())];
    return of_class[random.below(of_class.size())];
  }

  std::vector<std::vector<std::int64_t>> samples_;  // by class
};

}  // namespace

std::shared_ptr<const SampleOrder> weighted_order(const std::vector<double>& weights,
                                                  std::int64_t count) {
  return std::make_shared<WeightedOrder>(weights, count);
}

std::shared_ptr<const SampleOrder> balanced_order(const std::vector<std::int64_t>& classes,
                                                  std::int64_t count) {
  return std::make_shared<BalancedOrder>(classes, count);
}

}  // namespace tandem
