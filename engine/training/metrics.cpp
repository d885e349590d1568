// The metrics' formulas. A metric sees the value and the labels of its loss term alone: one over
// groups (a user's clicks) would need a field more in `Evaluation`, which loads those that the
// graph is fed with.
#include "engine/training/metrics.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "engine/training/predicted_values.h"

namespace tandem {
namespace {

/// One class decision per row: logits as [outer, classes, inner].
struct Axes {
  std::int64_t outer = 1, classes = 1, inner = 1;
};

Axes class_axes(const Shape& logits, const Shape& labels) {
  Axes axes;
  Shape without_last(logits.begin(), logits.end() - 1);
  const bool last = labels == without_last || labels == logits || logits.size() == 2;
  if (last) {
    axes.outer = element_count(without_last);
    axes.classes = logits.back();
  } else {
    axes.outer = logits[0];
    axes.classes = logits[1];
    axes.inner = element_count(logits) / std::max<std::int64_t>(1, axes.outer * axes.classes);
  }
  return axes;
}

std::int64_t largest(const HostTensor& x, const Axes& axes, std::int64_t row, std::int64_t column) {
  const std::int64_t first = row * axes.classes * axes.inner + column;
  std::int64_t best = 0;
  double best_value = x.number(first);
  for (std::int64_t c = 1; c < axes.classes; ++c) {
    const double value = x.number(first + c * axes.inner);
    if (value > best_value) {
      best_value = value;
      best = c;
    }
  }
  return best;
}

/// The bits of a float such that unsigned comparison orders them as the numbers; -0 is +0.
std::uint32_t rank_of(float x) {
  const std::uint32_t bits = x == 0 ? 0 : std::bit_cast<std::uint32_t>(x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

/// Calls f(value, label) for each element.
template <class F>
void each_element(const HostTensor& values, const HostTensor& labels, F f) {
  const std::int64_t elements = values.type().elements();
  assert(labels.type().elements() == elements);
  for (std::int64_t i = 0; i < elements; ++i) f(values.number(i), labels.number(i));
}

/// Numbers as bytes; ranks of a run have the same program.
template <class... T>
std::string bytes_of(const T&... numbers) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof(T)), ...);
  return bytes;
}

template <class T>
T taken_from(const std::string& bytes, std::size_t& at) {
  assert(at + sizeof(T) <= bytes.size());
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  at += sizeof(T);
  return number;
}

/// Adds to each number the one that `bytes_of` has written in its place.
template <class... T>
void add_numbers(const std::string& bytes, T&... numbers) {
  std::size_t at = 0;
  ((numbers += taken_from<T>(bytes, at)), ...);
  assert(at == bytes.size());
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Counts over batches. Logits [N, C], [N, d.., C] or [N, C, d..] against integer labels, one-hot
/// labels of the logits' shape, or one logit per sample against 0/1 labels (positive = class 1).
class Accuracy final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>& ignore_index) override {
    const std::int64_t elements = logits.type().elements();
    if (labels.type().elements() == elements &&
        (logits.shape().size() < 2 || logits.shape().back() == 1)) {
      for (std::int64_t i = 0; i < elements; ++i) {
        correct_ += (logits.number(i) > 0) == (labels.number(i) > 0.5);
      }
      total_ += elements;
      return;
    }
    const bool one_hot = labels.shape() == logits.shape();
    const Axes axes = class_axes(logits.shape(), labels.shape());
    for (std::int64_t row = 0; row < axes.outer; ++row) {
      for (std::int64_t column = 0; column < axes.inner; ++column) {
        const std::int64_t wanted =
            one_hot ? largest(labels, axes, row, column)
                    : static_cast<std::int64_t>(labels.number(row * axes.inner + column));
        if (ignore_index && wanted == *ignore_index) continue;
        correct_ += largest(logits, axes, row, column) == wanted;
        ++total_;
      }
    }
  }
  std::string sums() const override { return bytes_of(correct_, total_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, correct_, total_); }
  double value() override { return total_ == 0 ? 0 : static_cast<double>(correct_) / total_; }

 private:
  std::int64_t correct_ = 0, total_ = 0;
};

/// Mean of f(value, label) over all elements.
template <double (*f)(double value, double label)>
class Mean final : public Metric {
 public:
  void add(const HostTensor& values, const HostTensor& labels,
           const std::optional<std::int64_t>&) override {
    each_element(values, labels, [&](double value, double label) { sum_ += f(value, label); });
    count_ += values.type().elements();
  }
  std::string sums() const override { return bytes_of(sum_, count_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, sum_, count_); }
  double value() override { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

double squared_error(double prediction, double target) {
  const double difference = prediction - target;
  return difference * difference;
}

/// -(y log p + (1 - y) log(1 - p)) with p = sigmoid(x), written for both signs of x: natural
/// logarithm, without the loss's weights.
double log_loss(double x, double y) {
  return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
}

/// Area under the ROC curve: the share of pairs (positive, negative) whose positive has the larger
/// logit, equal logits counting one half. Labels above 0.5 are positive; every element counts.
/// Keeps 8 bytes a sample until the end and sorts them then: no binning, so exact, and the same
/// bits whatever the order of the samples. NaN where a logit is NaN or a class is missing.
class AreaUnderCurve final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>&) override {
    each_element(logits, labels, [&](double logit, double label) {
      const bool positive = label > 0.5;
      nan_ = nan_ || std::isnan(logit);
      positives_ += positive;
      scores_.push_back(std::uint64_t{rank_of(static_cast<float>(logit))} << 1 |
                        static_cast<std::uint64_t>(positive));
    });
  }
  std::string sums() const override {
    return bytes_of(positives_, nan_) +
           std::string(reinterpret_cast<const char*>(scores_.data()), scores_.size() * 8);
  }
  void add_sums(const std::string& sums) override {
    std::size_t at = 0;
    positives_ += taken_from<std::uint64_t>(sums, at);
    nan_ = taken_from<bool>(sums, at) || nan_;
    while (at < sums.size()) scores_.push_back(taken_from<std::uint64_t>(sums, at));
  }
  double value() override {
    const std::uint64_t negatives = scores_.size() - positives_;
    if (nan_ || positives_ == 0 || negatives == 0) return nan;
    std::sort(scores_.begin(), scores_.end());
    // Twice the number of pairs in order: 2 * positives * negatives fits into 64 bits.
    std::uint64_t twice = 0, below = 0;
    for (std::size_t i = 0; i < scores_.size();) {
      const std::uint64_t score = scores_[i] >> 1;
      std::uint64_t equal[2] = {0, 0};  // negatives, positives of this score
      for (; i < scores_.size() && scores_[i] >> 1 == score; ++i) ++equal[scores_[i] & 1];
      twice += equal[1] * (2 * below + equal[0]);
      below += equal[0];
    }
    return static_cast<double>(twice) / 2 /
           (static_cast<double>(positives_) * static_cast<double>(negatives));
  }
  std::string undefined(const LabelSummary& labels) const override {
    if (labels.positives == 0) return "no label is positive";
    return labels.positives == labels.count ? "all labels are positive" : "";
  }

 private:
  std::vector<std::uint64_t> scores_;  // the logit's rank among all floats, then the label's bit
  std::uint64_t positives_ = 0;
  bool nan_ = false;
};

/// Mean of sigmoid(logit) divided by the mean label: 1 where as many positives are predicted as
/// there are. NaN without positive labels.
class Calibration final : public Metric {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>&) override {
    each_element(logits, labels, [&](double logit, double label) {
      predicted_ += sigmoid(logit);
      labels_ += label;
    });
  }
  std::string sums() const override { return bytes_of(predicted_, labels_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, predicted_, labels_); }
  double value() override { return labels_ == 0 ? nan : predicted_ / labels_; }
  std::string undefined(const LabelSummary& labels) const override {
    return labels.sum == 0 ? "no label is positive" : "";
  }

 private:
  double predicted_ = 0, labels_ = 0;  // sums
};

template <class M>
std::unique_ptr<Metric> make_metric() {
  return std::make_unique<M>();
}

constexpr MetricKind metric_kinds[] = {
    {"accuracy", Better::larger, make_metric<Accuracy>, class_scores | binary_scores},
    {"auc", Better::larger, make_metric<AreaUnderCurve>, binary_scores, "labels of both classes"},
    {"calibration",  // best near 1
     Better::neither, make_metric<Calibration>, binary_logits, "positive labels"},
    {"log_loss", Better::smaller, make_metric<Mean<log_loss>>, binary_logits},
    {"loss", Better::smaller},
    {"mse", Better::smaller, make_metric<Mean<squared_error>>, number_scores},
};

}  // namespace

void LabelSummary::add(const HostTensor& labels) {
  const std::int64_t elements = labels.type().elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    const double label = labels.number(i);
    positives += label > 0.5;
    sum += label;
  }
  count += elements;
}

std::span<const MetricKind> all_metrics() { return metric_kinds; }

const MetricKind& metric_kind(std::string_view name) {
  const MetricKind* kind =
      std::find_if(std::begin(metric_kinds), std::end(metric_kinds),
                   [&](const MetricKind& candidate) { return candidate.name == name; });
  assert(kind != std::end(metric_kinds) && "the configuration checks names");
  return *kind;
}

}  // namespace tandem
