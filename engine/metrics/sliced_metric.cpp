#include "engine/metrics/sliced_metric.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/metrics/metric_sums.h"

namespace tandem {
namespace {

/// Some of the `count` samples, which lie one after the other along axis 0.
HostTensor some_samples(const HostTensor& all, std::span<const std::int64_t> samples,
                        std::int64_t count) {
  TensorType type = all.type();
  type.shape[0] = type.shape[0] / count * static_cast<std::int64_t>(samples.size());
  HostTensor some(std::move(type));
  const std::size_t bytes = all.bytes() / static_cast<std::size_t>(count);
  auto* to = static_cast<std::byte*>(some.data());
  const auto* from = static_cast<const std::byte*>(all.data());
  for (const std::int64_t sample : samples) {
    if (bytes > 0) std::memcpy(to, from + static_cast<std::size_t>(sample) * bytes, bytes);
    to += bytes;
  }
  return some;
}

}  // namespace

SlicedMetric::SlicedMetric(std::vector<std::int64_t> values,
                           const std::function<std::unique_ptr<Metric>()>& make)
    : values_(std::move(values)), has_samples_(values_.size(), false) {
  for (std::size_t i = 0; i < values_.size(); ++i) metrics_.push_back(make());
}

void SlicedMetric::add(const MetricInput& input) {
  std::vector<std::int64_t> order(input.slices.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  const auto value_of = [&](std::int64_t sample) {
    return input.slices[static_cast<std::size_t>(sample)];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return value_of(a) < value_of(b); });
  for (std::size_t first = 0; first < order.size();) {
    const std::int64_t value = value_of(order[first]);
    std::size_t last = first;
    while (last < order.size() && value_of(order[last]) == value) ++last;
    const auto place = std::lower_bound(values_.begin(), values_.end(), value);
    assert(place != values_.end() && *place == value);
    add_slice(input, static_cast<std::size_t>(place - values_.begin()),
              std::span(order).subspan(first, last - first));
    first = last;
  }
}

void SlicedMetric::add_slice(const MetricInput& all, std::size_t slice,
                             std::span<const std::int64_t> samples) {
  has_samples_[slice] = true;
  const auto count = static_cast<std::int64_t>(all.slices.size());
  const HostTensor values = some_samples(all.values, samples, count);
  const HostTensor labels = some_samples(all.labels, samples, count);
  std::vector<std::int64_t> groups;
  for (const std::int64_t sample : samples) {
    if (!all.groups.empty()) groups.push_back(all.groups[static_cast<std::size_t>(sample)]);
  }
  metrics_[slice]->add({values, labels, all.ignore_index, groups, {}});
}

std::string SlicedMetric::sums() const {
  std::string bytes;
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    if (!has_samples_[i]) continue;
    const std::string own = metrics_[i]->sums();
    bytes += metrics::bytes_of(std::uint64_t{i}, std::uint64_t{own.size()}) + own;
  }
  return bytes;
}

void SlicedMetric::add_sums(const std::string& sums) {
  for (std::size_t at = 0; at < sums.size();) {
    const auto slice = static_cast<std::size_t>(metrics::taken_from<std::uint64_t>(sums, at));
    const auto bytes = static_cast<std::size_t>(metrics::taken_from<std::uint64_t>(sums, at));
    metrics_[slice]->add_sums(sums.substr(at, bytes));
    has_samples_[slice] = true;
    at += bytes;
  }
}

MetricTable SlicedMetric::table() {
  MetricTable table;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    table.names.push_back(std::to_string(values_[i]));
    table.numbers.push_back(has_samples_[i] ? metrics_[i]->value() : metrics::no_number);
  }
  return table;
}

std::string SlicedMetric::unfit(const TensorType& values, const TensorType& labels) const {
  if (values.shape.empty() || labels.shape.empty() || values.shape[0] % labels.shape[0] != 0)
    return "values that begin with the axis of the samples, for `by`";
  return metrics_.empty() ? "" : metrics_[0]->unfit(values, labels);
}

}  // namespace tandem
