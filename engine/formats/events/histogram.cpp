#include "engine/formats/events/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

/// The ends of all buckets, in order.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> above;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) above.push_back(limit);
    above.push_back(std::numeric_limits<double>::max());
    std::vector<double> all;
    for (auto limit = above.rbegin(); limit != above.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), above.begin(), above.end());
    return all;
  }();
  return limits;
}

}  // namespace

Histogram::Histogram() : counts_(bucket_limits().size(), 0) {}

void Histogram::add(double value) {
  if (!std::isfinite(value)) return;
  const std::vector<double>& limits = bucket_limits();
  const auto end = std::upper_bound(limits.begin(), limits.end() - 1, value);
  ++counts_[static_cast<std::size_t>(end - limits.begin())];
  least_ = count_ == 0 ? value : std::min(least_, value);
  greatest_ = count_ == 0 ? value : std::max(greatest_, value);
  ++count_;
  sum_ += value;
  sum_of_squares_ += value * value;
}

void Histogram::add(std::span<const float> values) {
  for (const float value : values) add(static_cast<double>(value));
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
  const std::vector<double>& limits = bucket_limits();
  std::vector<Bucket> all;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const Bucket bucket{limits[i], static_cast<double>(counts_[i])};
    const bool joins = counts_[i] == 0 && !all.empty() && all.back().values == 0;
    if (joins)
      all.back() = bucket;
    else
      all.push_back(bucket);
  }
  if (all.size() > 1 && all.back().values == 0) all.pop_back();  // nothing lies above
  return all;
}

}  // namespace tandem
