// How many values lie where, in the buckets that TensorBoard expects.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tandem {

/// Buckets end at ±1e-12 · 1.1^k up to 1e20, at 0, and at the largest double on either side; the
/// value at an end belongs to the next bucket. Values that are not finite are left out.
class Histogram {
 public:
  Histogram();

  void add(double value);
  void add(std::span<const float> values);

  std::uint64_t count() const { return count_; }
  double least() const { return least_; }        // 0 where there is no value
  double greatest() const { return greatest_; }  // likewise
  double sum() const { return sum_; }
  double sum_of_squares() const { return sum_of_squares_; }

  /// A bucket ends at its limit, and begins where the one before it ends.
  struct Bucket {
    double limit = 0, values = 0;
    bool operator==(const Bucket&) const = default;
  };
  /// The buckets that hold values, and the last one of each run of empty ones; at least one.
  std::vector<Bucket> buckets() const;

 private:
  std::vector<std::uint64_t> counts_;  // one a limit
  std::uint64_t count_ = 0;
  double least_ = 0, greatest_ = 0, sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace tandem
