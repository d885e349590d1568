// Metrics over whole data sets, exact over all samples, and the table of their names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/graph/host_tensor.h"
#include "engine/losses/loss.h"

namespace tandem {

/// What of all labels decides whether metrics can be told of them.
struct LabelSummary {
  std::int64_t count = 0, positives = 0;  // above 0.5
  double sum = 0;

  void add(const HostTensor& labels);
};

/// Takes the values and labels of all batches, in any order, then tells the metric. Of samples that
/// ranks share, each has its own part, and adds the sums of all.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Labels equal to `ignore_index` do not count; accuracy alone knows it.
  virtual void add(const HostTensor& values, const HostTensor& labels,
                   const std::optional<std::int64_t>& ignore_index) = 0;
  /// All that it has taken in, as bytes of numbers.
  virtual std::string sums() const = 0;
  /// Takes in what another one of its kind has taken in.
  virtual void add_sums(const std::string& sums) = 0;
  /// 0 without samples, unless the metric says otherwise.
  virtual double value() = 0;
  /// Why such labels have no such metric; empty where they have one, also with more labels.
  virtual std::string undefined(const LabelSummary&) const { return ""; }
};

/// Which of two values of a metric tells of the better model.
enum class Better { larger, smaller, neither };

/// What eval.metrics may name.
struct MetricKind {
  std::string_view name;
  Better better = Better::smaller;
  /// Makes one; null for "loss", which comes of the evaluation's micro-batches.
  std::unique_ptr<Metric> (*make)() = nullptr;
  /// What the first value of a loss term has to be, for the metric to take it and the labels.
  unsigned scores = other_scores;
  std::string_view labels = "";  // that it is defined for, where not for all: for messages

  bool fits(const LossKind& loss) const { return (scores & loss.scores) != 0; }
};

/// Those that there are, by name.
std::span<const MetricKind> all_metrics();

/// The one of a name that is in `all_metrics`.
const MetricKind& metric_kind(std::string_view name);

}  // namespace tandem
