// Metrics over whole data sets, exact over all samples: accuracy, mse, auc, log_loss, calibration.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/training/config/run_config.h"

namespace tandem {

/// What of all labels decides whether metrics can be told of them.
struct LabelSummary {
  std::int64_t count = 0, positives = 0;  // above 0.5
  double sum = 0;

  void add(const HostTensor& labels);
};

/// Takes the values and labels of all batches, in any order, then tells the metric.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Labels equal to `ignore_index` do not count; accuracy alone knows it.
  virtual void add(const HostTensor& values, const HostTensor& labels,
                   const std::optional<std::int64_t>& ignore_index) = 0;
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
  double value() override { return total_ == 0 ? 0 : static_cast<double>(correct_) / total_; }

 private:
  std::int64_t correct_ = 0, total_ = 0;
};

/// Mean of (prediction - target)^2 over all elements.
class MeanSquaredError final : public Metric {
 public:
  void add(const HostTensor& predictions, const HostTensor& targets,
           const std::optional<std::int64_t>& ignore_index) override;
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
  double value() override;
  std::string undefined(const LabelSummary& labels) const override;

 private:
  double predicted_ = 0, labels_ = 0;  // sums
};

/// Null for "loss", which is no metric of its own, and for unknown names.
std::unique_ptr<Metric> make_metric(const std::string& name);

/// Whether the metric is computed from the value and the labels of such a loss term.
bool fits_term(const std::string& metric, LossKind kind);
/// The kinds that fit, for messages.
std::string fitting_terms(const std::string& metric);

/// Whether a larger value of the metric is the better one.
bool larger_is_better(const std::string& metric);
/// Whether the metric can tell which of two models is better: calibration is best near 1.
bool has_a_best(const std::string& metric);

}  // namespace tandem
