// Where GridSample looks along one axis: elements, their weights, and how these change.
#pragma once

#include <array>
#include <span>

#include "engine/graph/attributes.h"

namespace tandem {

struct GridTap {
  std::int64_t source = -1;  // -1: 0 beyond the ends
  double weight = 0;
  double slope = 0;  // derivative of the weight by the normalised coordinate
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
  /// end. A coordinate that is NaN is taken to be -1.
  GridTaps taps(double n, std::int64_t extent) const;
  /// f(element, weight, slopes of the weight along the axes) for each element that a place
  /// sees: products of the taps of 1 to 3 axes. coordinate(k) is the k-th number of
  /// the grid, which names axes from the last one on.
  template <class Coordinate, class F>
  void visit(std::span<const std::int64_t> extents, Coordinate coordinate, F f) const;

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

template <class Coordinate, class F>
void GridSampler::visit(std::span<const std::int64_t> extents, Coordinate coordinate, F f) const {
  const std::size_t axes = extents.size();
  std::array<GridTaps, 3> taps_of;
  int combinations = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    taps_of[i] = taps(static_cast<double>(coordinate(axes - 1 - i)), extents[i]);
    combinations *= taps_of[i].count;
  }
  for (int combination = 0; combination < combinations; ++combination) {
    std::int64_t element = 0;
    double weight = 1;
    std::array<double, 3> slopes{1, 1, 1};
    bool is_inside = true;
    int rest = combination;
    for (std::size_t i = 0; i < axes; ++i) {
      const GridTap& tap = taps_of[i].taps[static_cast<std::size_t>(rest % taps_of[i].count)];
      rest /= taps_of[i].count;
      is_inside = is_inside && tap.source >= 0;
      element = element * extents[i] + tap.source;
      weight *= tap.weight;
      for (std::size_t k = 0; k < axes; ++k) slopes[k] *= k == i ? tap.slope : tap.weight;
    }
    if (is_inside) f(element, weight, slopes);
  }
}

}  // namespace tandem
