// The metrics of the list all_metrics.inl, by name, with what follows from a configured one.
#include <algorithm>
#include <cassert>

#include "engine/metrics/metric.h"

namespace tandem {
namespace metrics {
#define TANDEM_METRIC(name) MetricKind name();
#include "engine/metrics/all_metrics.inl"
}  // namespace metrics

std::span<const MetricKind> all_metrics() {
  static const std::vector<MetricKind> list{
#define TANDEM_METRIC(name) metrics::name(),
#include "engine/metrics/all_metrics.inl"
  };
  return list;
}

const MetricKind* find_metric(std::string_view name) { return find_named(all_metrics(), name); }

MetricConfig metric_of(std::string_view kind) {
  MetricConfig metric;
  metric.kind = find_metric(kind);
  assert(metric.kind != nullptr);
  metric.options = metric.kind->options;
  metric.name = metric.default_name();
  return metric;
}

std::string group_field(const MetricConfig& metric) {
  return metric.kind->group == nullptr ? "" : metric.kind->group(metric);
}

bool is_one_number(const MetricConfig& metric) {
  return metric.by.empty() && (metric.kind->is_table == nullptr || !metric.kind->is_table(metric));
}

Better better_of(const std::vector<MetricConfig>& metrics, std::string_view name) {
  const MetricConfig* const found = find_named(metrics, name);
  return found == nullptr ? Better::smaller : found->kind->better;  // the loss
}

void LabelSummary::add(const HostTensor& labels, std::span<const std::int64_t> groups) {
  const std::int64_t elements = labels.type().elements();
  const auto samples = static_cast<std::int64_t>(groups.size());
  for (std::int64_t i = 0; i < elements; ++i) {
    const double label = labels.number(i);
    positives += label > 0.5;
    sum += label;
    least = count + i == 0 ? label : std::min(least, label);
    greatest = count + i == 0 ? label : std::max(greatest, label);
    if (samples == 0 || has_mixed_group) continue;
    unsigned& classes = classes_[groups[static_cast<std::size_t>(i / (elements / samples))]];
    classes |= label > 0.5 ? 2 : 1;
    has_mixed_group = classes == 3;
  }
  count += elements;
}

}  // namespace tandem
