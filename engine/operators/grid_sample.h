// Where GridSample looks along one axis: elements, their weights, and how these change.
#pragma once

#include <array>

#include "engine/graph/attributes.h"

namespace tandem {

struct GridTap {
  std::int64_t source = -1;  // -1: 0 beyond the ends
  double weight = 0;
  double slope = 0;  // of the weight by the normalised coordinate
};

struct GridTaps {
  std::array<GridTap, 4> taps;
  int count = 0;
};

/// GridSample's attributes, read once.
class GridSampler {
 public:
  explicit GridSampler(const Attributes& attributes);
  /// The elements of an axis around the normalised coordinate `n`, -1 at its begin and 1 at its
  /// end. A coordinate that is no number is taken to be -1.
  GridTaps taps(double n, std::int64_t extent) const;

 private:
  enum class Mode { nearest, linear, cubic };
  enum class Padding { zeros, border, reflection };
  double low(std::int64_t) const { return align_corners_ ? 0 : -0.5; }
  double high(std::int64_t extent) const {
    return static_cast<double>(extent) - (align_corners_ ? 1 : 0.5);
  }

  Mode mode_;
  Padding padding_;
  bool align_corners_;
};

}  // namespace tandem
