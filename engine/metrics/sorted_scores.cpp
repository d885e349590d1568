#include "engine/metrics/sorted_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {

std::uint64_t ranked(double logit, bool is_positive) {
  const auto x = static_cast<float>(logit);
  const std::uint32_t bits = x == 0 ? 0 : std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rank = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return std::uint64_t{rank} << 1 | static_cast<std::uint64_t>(is_positive);
}

double roc_area(std::span<const std::uint64_t> sorted) {
  // Twice the number of pairs in order: 2 * positives * negatives fits into 64 bits.
  std::uint64_t twice = 0, positives = 0, below = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    const std::uint64_t score = sorted[i] >> 1;
    std::uint64_t equal[2] = {0, 0};  // negatives, positives of this score
    for (; i < sorted.size() && sorted[i] >> 1 == score; ++i) ++equal[sorted[i] & 1];
    twice += equal[1] * (2 * below + equal[0]);
    below += equal[0];
    positives += equal[1];
  }
  if (positives == 0 || below == 0) return no_number;
  return static_cast<double>(twice) / 2 /
         (static_cast<double>(positives) * static_cast<double>(below));
}

void SortedScores::add(const MetricInput& input) {
  each_element(input, [&](double logit, double label) {
    nan_ = nan_ || std::isnan(logit);
    scores_.push_back(ranked(logit, label > 0.5));
  });
}

std::string SortedScores::sums() const {
  return bytes_of(nan_) +
         std::string(reinterpret_cast<const char*>(scores_.data()), scores_.size() * 8);
}

void SortedScores::add_sums(const std::string& sums) {
  std::size_t at = 0;
  nan_ = taken_from<bool>(sums, at) || nan_;
  while (at < sums.size()) scores_.push_back(taken_from<std::uint64_t>(sums, at));
}

double SortedScores::value() {
  if (nan_) return no_number;
  std::sort(scores_.begin(), scores_.end());
  return of_sorted(scores_);
}

}  // namespace tandem::metrics
