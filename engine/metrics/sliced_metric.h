// A metric for each value of a data field.
#pragma once

#include <functional>

#include "engine/metrics/metric.h"

namespace tandem {

/// The most values that `by` may slice by.
constexpr std::size_t most_slices = 1000;

/// A table of what `make` makes, one for each value (ascending), which takes in the samples whose
/// MetricInput::slices say so. A slice without samples, or without such a metric, has NaN.
class SlicedMetric final : public Metric {
 public:
  SlicedMetric(std::vector<std::int64_t> values,
               const std::function<std::unique_ptr<Metric>()>& make);

  void add(const MetricInput& input) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  MetricTable table() override;
  std::string unfit(const TensorType& values, const TensorType& labels) const override;

 private:
  void add_slice(const MetricInput& all, std::size_t slice, std::span<const std::int64_t> samples);

  std::vector<std::int64_t> values_;
  std::vector<std::unique_ptr<Metric>> metrics_;  // by value
  std::vector<bool> has_samples_;
};

}  // namespace tandem
