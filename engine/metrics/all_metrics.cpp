// The list of metrics: engine/metrics/NAME.cpp has metrics::NAME().
#include <algorithm>
#include <cassert>

#include "engine/metrics/metric.h"

// clang-format off: one metric a line, in the order of messages and docs.
#define TANDEM_METRICS(METRIC) \
  METRIC(accuracy)             \
  METRIC(auc)                  \
  METRIC(auc_pr)               \
  METRIC(bits_per_token)       \
  METRIC(bits_per_byte)        \
  METRIC(calibration)          \
  METRIC(confusion)            \
  METRIC(dice)                 \
  METRIC(f1)                   \
  METRIC(gauc)                 \
  METRIC(iou)                  \
  METRIC(log_loss)             \
  METRIC(loss)                 \
  METRIC(mae)                  \
  METRIC(mse)                  \
  METRIC(perplexity)           \
  METRIC(precision)            \
  METRIC(r2)                   \
  METRIC(recall)               \
  METRIC(rmse)                 \
  METRIC(top_5)                \
  METRIC(top_k)
// clang-format on

namespace tandem {
namespace metrics {
#define DECLARE_METRIC(name) MetricKind name();
TANDEM_METRICS(DECLARE_METRIC)
#undef DECLARE_METRIC
}  // namespace metrics

std::span<const MetricKind> all_metrics() {
#define LIST_METRIC(name) metrics::name(),
  static const std::vector<MetricKind> list{TANDEM_METRICS(LIST_METRIC)};
#undef LIST_METRIC
  return list;
}

const MetricKind* find_metric(std::string_view name) {
  const std::span<const MetricKind> all = all_metrics();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const MetricKind& kind) { return kind.name == name; });
  return found == all.end() ? nullptr : &*found;
}

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
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const MetricConfig& metric) { return metric.name == name; });
  return found == metrics.end() ? Better::smaller : found->kind->better;  // the loss
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
