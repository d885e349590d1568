// A metric as a value: its name, its keys, which losses it fits, and what takes samples in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/losses/loss.h"
#include "engine/metrics/metric_table.h"
#include "engine/training/config/kinds/kind_options.h"
#include "engine/training/config/report_config.h"

namespace tandem {

/// What of all labels decides whether metrics can be told of them.
struct LabelSummary {
  std::int64_t count = 0, positives = 0;  // above 0.5
  double sum = 0, least = 0, greatest = 0;
  bool has_mixed_group = false;  // one with labels of both classes

  /// `groups`: one for each sample, of metrics that have them.
  void add(const HostTensor& labels, std::span<const std::int64_t> groups = {});

 private:
  std::unordered_map<std::int64_t, unsigned> classes_;  // by group: 1 negatives, 2 positives
};

/// What a metric takes in of one micro-batch.
struct MetricInput {
  const HostTensor& values;  // the first value of the loss term
  const HostTensor& labels;
  std::optional<std::int64_t> ignore_index = {};  // of the loss term: such labels do not count
  std::span<const std::int64_t> groups = {};      // one a sample, of metrics that have them
  std::span<const std::int64_t> slices = {};      // one a sample, where the metric has a `by`
};

/// Takes the values and labels of all batches, in any order, then tells the metric. Of samples that
/// ranks share, each has its own part, and adds the sums of all.
class Metric {
 public:
  virtual ~Metric() = default;
  virtual void add(const MetricInput& input) = 0;
  /// All that it has taken in, as bytes of numbers.
  virtual std::string sums() const = 0;
  /// Takes in what another one of its kind has taken in.
  virtual void add_sums(const std::string& sums) = 0;
  /// Of metrics that are one number: 0 without samples, unless the metric says otherwise.
  virtual double value() { return 0; }
  /// Of all others: its numbers, without a name.
  virtual MetricTable table() { return {}; }
  /// Why such labels have no such metric; empty where they have one, also with more labels.
  virtual std::string undefined(const LabelSummary&) const { return ""; }
  /// What is expected in place of values and labels of these types; empty where they fit.
  virtual std::string unfit(const TensorType& /*values*/, const TensorType& /*labels*/) const {
    return "";
  }
};

/// Which of two values of a metric tells of the better model.
enum class Better { larger, smaller, neither };

/// What eval.metrics may name.
struct MetricKind {
  std::string_view name;
  std::string_view source;  // whose numbers they are
  std::string_view help;    // the formula, one line
  std::vector<OptionInfo> options = {};
  Better better = Better::smaller;
  /// What the first value of a loss term has to be, for the metric to take it and the labels.
  unsigned scores = other_scores;
  std::string_view labels = "";  // that it is defined for, where not for all: for messages
  /// The option that names a data field of groups; "": it has none.
  std::string_view group_key = "";
  /// Whether it is more than one number; null: never.
  bool (*is_table)(const MetricConfig&) = nullptr;
  /// Makes one for a loss with these scores; null for "loss", which comes of the evaluation's
  /// micro-batches.
  std::unique_ptr<Metric> (*make)(const MetricConfig&, unsigned scores) = nullptr;

  bool fits(const LossKind& loss) const { return (scores & loss.scores) != 0; }
};

/// All kinds, in the order of the list in all_metrics.cpp.
std::span<const MetricKind> all_metrics();
/// Null where there is no such kind.
const MetricKind* find_metric(std::string_view name);
/// docs/metrics.md: every kind with its formula, losses, keys and defaults.
std::string metrics_markdown();

/// The metric of a kind with its defaults.
MetricConfig metric_of(std::string_view kind);
/// The data field of its groups; "" where it has none.
std::string group_field(const MetricConfig& metric);
/// Whether eval.best and schedules may look at it, as far as that is one number.
bool is_one_number(const MetricConfig& metric);
/// What is better of a metric by its name: "loss", which is always measured, or one of these.
Better better_of(const std::vector<MetricConfig>& metrics, std::string_view name);

}  // namespace tandem
