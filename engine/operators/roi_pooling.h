// Regions of feature maps: where their bins and samples lie.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace tandem {

/// The samples of one region along one axis: bin b has `count` of them, equally far apart.
struct RoiAxis {
  double start = 0, bin = 0;
  std::int64_t count = 0;

  /// From begin to end of the region, in elements; sampling_ratio 0: one sample for each element
  /// that a bin covers, 2^12 at most.
  RoiAxis(double begin, double end, std::int64_t bins, std::int64_t sampling_ratio,
          bool half_pixel) {
    double extent = end - begin;
    if (!half_pixel) extent = std::max(extent, 1.0);
    start = begin;
    bin = extent / static_cast<double>(bins);
    const double wanted = sampling_ratio > 0 ? static_cast<double>(sampling_ratio) : std::ceil(bin);
    count = wanted > 0 ? static_cast<std::int64_t>(std::min(wanted, 4096.0)) : 0;
  }
  double at(std::int64_t b, std::int64_t sample) const {
    return start + static_cast<double>(b) * bin +
           (static_cast<double>(sample) + 0.5) * bin / static_cast<double>(count);
  }
};

/// The two elements around a place, with their weights; none where it lies more than one element
/// outside.
struct RoiTaps {
  std::array<std::int64_t, 2> places{0, 0};
  std::array<double, 2> weights{0, 0};

  RoiTaps(double at, std::int64_t extent) {
    if (!(at >= -1 && at <= static_cast<double>(extent))) return;
    at = std::clamp(at, 0.0, static_cast<double>(extent - 1));
    places[0] = static_cast<std::int64_t>(at);
    places[1] = std::min(places[0] + 1, extent - 1);
    weights[1] = at - static_cast<double>(places[0]);
    weights[0] = 1 - weights[1];
  }
};

}  // namespace tandem
