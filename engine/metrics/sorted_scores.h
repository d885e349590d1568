// Binary scores that are kept until all are there, and the area under their ROC curve.
#pragma once

#include "engine/metrics/metric.h"

namespace tandem::metrics {

/// The rank of a logit among all floats, then a bit that says whether it is positive. -0 is +0.
std::uint64_t ranked(double logit, bool is_positive);

/// The share of pairs (positive, negative) whose positive has the larger logit, equal ones counting
/// one half. NaN where a class is missing.
double roc_area(std::span<const std::uint64_t> sorted);

/// Keeps 8 bytes an element and sorts them at the end: no binning, so exact, and the same bits
/// whatever the order of the samples. Labels above 0.5 are positive.
class SortedScores : public Metric {
 public:
  void add(const MetricInput& input) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  /// NaN where a logit is NaN.
  double value() override;

 protected:
  virtual double of_sorted(std::span<const std::uint64_t> sorted) const = 0;

 private:
  std::vector<std::uint64_t> scores_;
  bool nan_ = false;
};

}  // namespace tandem::metrics
