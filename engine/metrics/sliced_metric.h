// A metric for each value of a data field.
#pragma once

#include <functional>

#include "engine/metrics/metric.h"

namespace tandem {

/// The most values that `by` may slice by.
constexpr std::size_t most_slices = 1000;

/// A table of metrics from `make`, one for each value (ascending), which accumulates the samples
/// with this value in MetricInput::slices. A slice without samples, or for which the metric is
/// undefined, has NaN.
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
