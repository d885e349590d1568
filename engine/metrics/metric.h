// A metric as a value: its name, its keys, which losses it fits, and what accumulates samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/config/kinds/kind_options.h"
#include "engine/config/report_config.h"
#include "engine/graph/host_tensor.h"
#include "engine/losses/loss.h"
#include "engine/metrics/metric_table.h"

namespace tandem {

/// What has to be known of all labels to decide whether a metric is defined for them.
struct LabelSummary {
  std::int64_t count = 0, positives = 0;  // above 0.5
  double sum = 0, least = 0, greatest = 0;
  bool has_mixed_group = false;  // some group has labels of both classes

  /// `groups`: one for each sample, where the metric has groups.
  void add(const HostTensor& labels, std::span<const std::int64_t> groups = {});

 private:
  std::unordered_map<std::int64_t, unsigned> classes_;  // by group: 1 negatives, 2 positives
};

/// What a metric gets from one micro-batch.
struct MetricInput {
  const HostTensor& values;  // the first value of the loss term
  const HostTensor& labels;
  std::optional<std::int64_t> ignore_index = {};  // the loss term's: such labels do not count
  std::span<const std::int64_t> groups = {};      // one a sample, where the metric has groups
  std::span<const std::int64_t> slices = {};      // one a sample, where the metric has a `by`
};

/// Accumulates the values and labels of all batches, in any order, then computes the metric. Where
/// ranks divide the samples, each accumulates its own, and the sums of all ranks are added.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void add(const MetricInput& input) = 0;
  /// Everything that it has accumulated, as bytes of numbers.
  virtual std::string sums() const = 0;
  /// Adds what another metric of its kind has accumulated.
  virtual void add_sums(const std::string& sums) = 0;
  /// For metrics that are one number: 0 without samples, unless the metric says otherwise.
  virtual double value() { return 0; }
  /// For all other metrics: their numbers, without the metric's name.
  virtual MetricTable table() { return {}; }
  /// Why the metric is undefined for such labels; empty where it is defined, also with more labels.
  virtual std::string undefined(const LabelSummary&) const { return ""; }
  /// What is expected in place of values and labels of these types; empty where they fit.
  virtual std::string unfit(const TensorType& /*values*/, const TensorType& /*labels*/) const {
    return "";
  }
};

/// Which of two values of a metric belongs to the better model.
enum class Better { larger, smaller, neither };

/// What eval.metrics may name.
struct MetricKind {
  std::string_view name;
  std::string_view source;  // whose definition it follows
  std::string_view help;    // the formula, one line
  AnyOptions options = {};  // with their defaults
  Better better = Better::smaller;
  /// What the first value of a loss term has to be for the metric to accept it and the labels.
  unsigned scores = other_scores;
  std::string_view labels = "";  // for messages: those that it is defined for, if not all
  /// The data field of groups that the options name; null: it has no groups.
  const std::string& (*group)(const MetricConfig&) = nullptr;
  /// The metric's name where none is given, from the options; null: the kind's.
  std::string (*default_name)(const MetricConfig&) = nullptr;
  /// Whether it is more than one number; null: never.
  bool (*is_table)(const MetricConfig&) = nullptr;
  /// Makes one for a loss with these scores; null for "loss", which comes from the evaluation's
  /// micro-batches.
  std::unique_ptr<Metric> (*make)(const MetricConfig&, unsigned scores) = nullptr;

  bool fits(const LossKind& loss) const { return (scores & loss.scores) != 0; }
};

/// All kinds, in the order of the list all_metrics.inl.
std::span<const MetricKind> all_metrics();
/// Null where there is no such kind.
const MetricKind* find_metric(std::string_view name);
/// docs/metrics.md: every kind with its formula, losses, keys and defaults.
std::string metrics_markdown();

/// The metric of a kind with its defaults.
MetricConfig metric_of(std::string_view kind);
/// The data field of its groups; "" where it has none.
std::string group_field(const MetricConfig& metric);
/// Whether it is one number, so that eval.best and schedules may use it.
bool is_one_number(const MetricConfig& metric);
/// Which values are better for the metric of that name: "loss", which is always measured, or one of
/// `metrics`.
Better better_of(const std::vector<MetricConfig>& metrics, std::string_view name);

}  // namespace tandem
