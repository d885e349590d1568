// Scores of classes with their labels, row by row.
#pragma once

#include "engine/metrics/metric.h"

namespace tandem::metrics {

/// One decision per row: scores as [outer, classes, inner].
struct ClassAxes {
  std::int64_t outer = 1, classes = 1, inner = 1;
};

/// Labels leave the class axis out (the last one, or axis 1), or are one-hot.
ClassAxes class_axes(const Shape& scores, const Shape& labels);

/// The first one with the greatest of score(0), score(1), …
template <class F>
std::int64_t first_greatest(std::int64_t classes, F score) {
  std::int64_t best = 0;
  double best_score = score(std::int64_t{0});
  for (std::int64_t c = 1; c < classes; ++c) {
    const double one = score(c);
    if (one > best_score) {
      best_score = one;
      best = c;
    }
  }
  return best;
}

/// Calls f with a pointer to all numbers, as float or double.
template <class F>
void with_numbers(const HostTensor& x, F f) {
  if (x.dtype() == DType::float64) {
    f(x.as<double>().data());
  } else if (x.dtype() == DType::float32) {
    f(x.as<float>().data());
  } else {
    const HostTensor floats = x.converted(DType::float32);
    f(floats.as<float>().data());
  }
}

/// Calls f(label, score, classes) for each row whose label counts; score(c) is that of class c. For
/// one-hot labels, the label is the class with the greatest one.
template <class F>
void each_row(const MetricInput& input, const std::optional<std::int64_t>& ignore_index, F f) {
  const ClassAxes axes = class_axes(input.values.shape(), input.labels.shape());
  const bool one_hot = input.labels.shape() == input.values.shape();
  with_numbers(input.values, [&](const auto* numbers) {
    for (std::int64_t row = 0; row < axes.outer; ++row) {
      for (std::int64_t column = 0; column < axes.inner; ++column) {
        const std::int64_t first = row * axes.classes * axes.inner + column;
        const auto place = [&](std::int64_t c) { return first + c * axes.inner; };
        const std::int64_t label =
            one_hot ? first_greatest(axes.classes,
                                     [&](std::int64_t c) { return input.labels.number(place(c)); })
                    : static_cast<std::int64_t>(input.labels.number(row * axes.inner + column));
        if (ignore_index && label == *ignore_index) continue;
        f(
            label, [&](std::int64_t c) { return static_cast<double>(numbers[place(c)]); },
            axes.classes);
      }
    }
  });
}

/// Calls f(label, predicted) for each decision that counts: one for each element of binary scores
/// (1 above 0; labels above 0.5), else one for each row.
template <class F>
void each_decision(const MetricInput& input, bool is_binary,
                   const std::optional<std::int64_t>& ignore_index, F f) {
  if (is_binary) {
    const std::int64_t elements = input.values.type().elements();
    for (std::int64_t i = 0; i < elements; ++i) {
      const double label = input.labels.number(i);
      if (ignore_index && label == static_cast<double>(*ignore_index)) continue;
      f(std::int64_t{label > 0.5}, std::int64_t{input.values.number(i) > 0});
    }
    return;
  }
  each_row(input, ignore_index, [&](std::int64_t label, auto score, std::int64_t classes) {
    if (label >= 0 && label < classes) f(label, first_greatest(classes, score));
  });
}

/// How many classes there are to decide between.
std::int64_t decided_classes(const Shape& scores, const Shape& labels, bool is_binary);

}  // namespace tandem::metrics
