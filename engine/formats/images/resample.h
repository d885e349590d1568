// Planes of bytes at another size, each new pixel a mean of the old ones that it covers (PIL's
// bilinear filter, which is torchvision's with antialias).
#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

/// A part of planes that lie one after the other.
struct PlanePart {
  std::int64_t channels = 0;
  std::int64_t plane = 0, row = 0;  // elements from one plane, and one row, to the next
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// Makes [channels, height, width] of the part; pixels outside of it have no influence. The
/// arithmetic is PIL's for bytes: along rows first, then along columns, weights with 22 bits of
/// fraction, bytes in between. (Pillow 13 takes columns first for some sizes, which moves pixels by
/// a level.) Allocates nothing in steady state.
void resample_planes(const std::uint8_t* from, const PlanePart& part, std::int64_t height,
                     std::int64_t width, std::uint8_t* to);
/// Resamples floats in the same way, but without rounding sums in between.
void resample_planes(const float* from, const PlanePart& part, std::int64_t height,
                     std::int64_t width, float* to);

}  // namespace tandem
