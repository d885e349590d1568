#include "engine/training/metrics.h"

#include <algorithm>

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

}  // namespace

void Accuracy::add(const HostTensor& logits, const HostTensor& labels,
                   const std::optional<std::int64_t>& ignore_index) {
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

void MeanSquaredError::add(const HostTensor& predictions, const HostTensor& targets) {
  const std::int64_t elements = predictions.type().elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    const double difference = predictions.number(i) - targets.number(i);
    sum_ += difference * difference;
  }
  count_ += elements;
}

bool larger_is_better(const std::string& metric) { return metric == "accuracy"; }

}  // namespace tandem
