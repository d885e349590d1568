// Metrics over whole data sets, exact over all samples, and the table of their names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Counts over batches. Logits [N, C], [N, d.., C] or [N, C, d..] against integer labels, one-hot
/// labels of the logits' shape, or one logit per sample against 0/1 labels (positive = class 1).
class Accuracy final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>& ignore_index) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  double value() override { return total_ == 0 ? 0 : static_cast<double>(correct_) / total_; }

 private:
  std::int64_t correct_ = 0, total_ = 0;
};

/// Mean of (prediction - target)^2 over all elements.
class MeanSquaredError final : public Metric {
 public:
  void add(const HostTensor& predictions, const HostTensor& targets,
           const std::optional<std::int64_t>& ignore_index) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  double value() override { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Area under the ROC curve: the share of pairs (positive, negative) whose positive has the larger
/// logit, equal logits counting one half. Labels above 0.5 are positive; every element counts.
/// Keeps 8 bytes a sample until the end and sorts them then: no binning, so exact, and the same
/// bits whatever the order of the samples. NaN where a logit is NaN or a class is missing.
class AreaUnderCurve final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>& ignore_index) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  double value() override;
  std::string undefined(const LabelSummary& labels) const override;

 private:
  std::vector<std::uint64_t> scores_;  // the logit's rank among all floats, then the label's bit
  std::uint64_t positives_ = 0;
  bool nan_ = false;
};

/// Mean of -(y log p + (1 - y) log(1 - p)) with p = sigmoid(logit) over all elements: natural
/// logarithm, without the loss's weights.
class LogLoss final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>& ignore_index) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  double value() override { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Mean of sigmoid(logit) divided by the mean label: 1 where as many positives are predicted as
/// there are. NaN without positive labels.
class Calibration final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>& ignore_index) override;
  std::string sums() const override;
  void add_sums(const std::string& sums) override;
  double value() override;
  std::string undefined(const LabelSummary& labels) const override;

 private:
  double predicted_ = 0, labels_ = 0;  // sums
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

template <class M>
std::unique_ptr<Metric> make_metric() {
  return std::make_unique<M>();
}

inline constexpr MetricKind metric_kinds[] = {
    {"accuracy", Better::larger, make_metric<Accuracy>, class_scores | binary_scores},
    {"auc", Better::larger, make_metric<AreaUnderCurve>, binary_scores, "labels of both classes"},
    {"calibration",  // best near 1
     Better::neither, make_metric<Calibration>, binary_logits, "positive labels"},
    {"log_loss", Better::smaller, make_metric<LogLoss>, binary_logits},
    {"loss", Better::smaller},
    {"mse", Better::smaller, make_metric<MeanSquaredError>, number_scores},
};

/// Of a name that is in the table.
const MetricKind& metric_kind(std::string_view name);

}  // namespace tandem
