// Checks that all operators with labels share.
#pragma once

#include "engine/operators/network_checks.h"

namespace tandem::operators {

/// The shape [N, d...] of the labels for class scores [N, C, d...]; throws where the rank is
/// below 2.
inline Shape labels_shape(const NodeView& view, const Shape& scores) {
  if (scores.size() < 2) {
    view.fail("the class scores have the wrong rank", "[N, C] or [N, C, d...]", to_string(scores));
  }
  if (scores[1] < 1) view.fail("there are no classes", "1 class at least", to_string(scores));
  Shape shape = scores;
  shape.erase(shape.begin() + 1);
  return shape;
}

/// Inputs `labels` and (optional) `weights` fit class scores of that type; returns the labels'
/// shape.
inline Shape require_labels(const NodeView& view, const TensorType& scores, std::size_t labels,
                            std::size_t weights) {
  const Shape shape = labels_shape(view, scores.shape);
  require_index(view, labels);
  require_shape(view, labels, shape);
  if (view.has_input(weights)) {
    const DType dtype = view.input(weights).dtype;
    if (dtype != DType::float32 && dtype != scores.dtype) {
      require_dtype(view, weights, DType::float32);
    }
    require_shape(view, weights, shape);
  }
  return shape;
}

}  // namespace tandem::operators
