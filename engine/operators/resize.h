// Interpolation along one axis, as ONNX's Resize and its reference implementation have it: which
// elements of an axis go into each new one, with which weights.
#pragma once

#include "engine/graph/attributes.h"

namespace tandem {

/// New element o is the sum of weights[k] * x[sources[k]] over firsts[o] <= k < firsts[o + 1].
struct ResizeTaps {
  std::vector<std::int64_t> firsts, sources;
  std::vector<double> weights;

  std::int64_t count() const { return static_cast<std::int64_t>(firsts.size()) - 1; }
};

/// Where new element o lies on the old axis, whose elements are at 0, 1, 2, ...
inline double resize_coordinate(std::int64_t o, double scale, double shift, double offset) {
  return (static_cast<double>(o) + shift) / scale + offset;
}

/// The taps of a node of Resize (or ResizeGrad) over an axis of `extent` elements. Elements before
/// the first one or after the last one equal that one.
ResizeTaps resize_taps(const Attributes& attributes, std::int64_t extent);

/// The transposed weights: element i of the old axis as a sum over the new ones.
ResizeTaps transposed(const ResizeTaps& taps, std::int64_t extent);

}  // namespace tandem
