// From the number of an element to where operands have it: divisions by known numbers, axes and
// strides. For g++, nvcc and NVRTC.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cstdint>
#endif

#include "engine/graph/host_device.h"
#include "kernels/shared/block/unroll.h"

namespace tandem::cuda {

inline constexpr int most_axes = 8;
inline constexpr std::int64_t most_small_indices = std::int64_t{1} << 31;

/// n / extent and n % extent, without a division where n < 2^31:
/// n / d = (high half of n m + n) / 2^s with 2^s >= d, m = floor(2^32 (2^s - d) / d) + 1.
struct Divisor {
  std::int64_t extent = 1;
  std::uint32_t multiplier = 1, shift = 0;

  Divisor() = default;
  TANDEM_HOST_DEVICE explicit Divisor(std::int64_t d) : extent(d) {
    if (d >= most_small_indices || d < 1) return;
    while ((std::int64_t{1} << shift) < d) ++shift;
    const auto power = std::uint64_t{1} << shift, divisor = static_cast<std::uint64_t>(d);
    multiplier = static_cast<std::uint32_t>(((power - divisor) << 32) / divisor + 1);
  }

  TANDEM_HOST_DEVICE void split_small(std::uint32_t n, std::uint32_t& quotient,
                                      std::uint32_t& rest) const {
    const auto high = static_cast<std::uint32_t>((std::uint64_t{n} * multiplier) >> 32);
    quotient = (high + n) >> shift;
    rest = n - quotient * static_cast<std::uint32_t>(extent);
  }
};

/// Strides of operands over a common index space, in elements. Operands with the same strides share
/// a place. `most`: places that there is room for.
template <int most>
struct Walk {
  int axes = 1;        // outermost first
  bool large = false;  // some index is 2^31 or more
  Divisor extents[most_axes];
  std::int64_t strides[most][most_axes] = {};

  /// Adds to `offset` where index number `index` of the axes [first, last) is; each index of the
  /// last axis counts `width` elements.
  template <int places>
  TANDEM_HOST_DEVICE void locate(int first, int last, std::int64_t index, int width,
                                 std::int64_t (&offset)[places]) const {
    if (large) {
      for (int axis = last - 1; axis >= first; --axis) {
        const std::int64_t extent = extents[axis].extent;
        const std::int64_t at = axis == first ? index : index % extent;
        index /= extent;
        add(axis, axis == last - 1 ? at * width : at, offset);
      }
      return;
    }
    auto left = static_cast<std::uint32_t>(index);
    for (int axis = last - 1; axis >= first; --axis) {
      std::uint32_t at = left;
      if (axis != first) extents[axis].split_small(left, left, at);
      add(axis, axis == last - 1 ? std::int64_t{at} * width : std::int64_t{at}, offset);
    }
  }

 private:
  template <int places>
  TANDEM_HOST_DEVICE void add(int axis, std::int64_t at, std::int64_t (&offset)[places]) const {
    TANDEM_UNROLL
    for (int place = 0; place < places; ++place) offset[place] += at * strides[place][axis];
  }
};

}  // namespace tandem::cuda
