#include "engine/metrics/class_scores.h"

#include <algorithm>

namespace tandem::metrics {

ClassAxes class_axes(const Shape& scores, const Shape& labels_or_column) {
  ClassAxes axes;
  Shape labels = labels_or_column;  // [.., 1] counts as [..], as losses take it
  if (labels.size() == scores.size() && labels != scores && labels.back() == 1) labels.pop_back();
  Shape without_last(scores.begin(), scores.end() - 1);
  const bool last = labels == without_last || labels == scores || scores.size() == 2;
  if (last) {
    axes.outer = element_count(without_last);
    axes.classes = scores.back();
  } else {
    axes.outer = scores[0];
    axes.classes = scores[1];
    axes.inner = element_count(scores) / std::max<std::int64_t>(1, axes.outer * axes.classes);
  }
  return axes;
}

std::int64_t decided_classes(const Shape& scores, const Shape& labels, bool is_binary) {
  return is_binary ? 2 : class_axes(scores, labels).classes;
}

}  // namespace tandem::metrics
