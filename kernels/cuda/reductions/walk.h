// Places of elements of one or two operands, by index, over the walk that all kernels share.
#pragma once

#include <vector>

#include "kernels/shared/block/walk.h"

namespace tandem::cuda::reductions {

/// Divides by a number that is fixed before the launch.
class Division {
 public:
  Division() = default;
  /// `largest`: no larger number is divided.
  Division(std::int64_t by, std::int64_t largest)
      : by_(by), small_(by < most_small_indices && largest < most_small_indices) {}

  /// n / by; n becomes the remainder.
  TANDEM_HOST_DEVICE std::int64_t divide(std::int64_t& n) const {
    if (!small_) {
      const std::int64_t quotient = n / by_.extent;
      n -= quotient * by_.extent;
      return quotient;
    }
    std::uint32_t quotient = 0, rest = 0;
    by_.split_small(static_cast<std::uint32_t>(n), quotient, rest);
    n = rest;
    return quotient;
  }

 private:
  Divisor by_;
  bool small_ = true;
};

/// An axis of an index space, with the strides of two operands over it.
struct WalkAxis {
  std::int64_t extent = 1, stride = 0, other = 0;
};

/// The place of the element with this index, for one or two operands. The last axis is the
/// fastest.
class Walk {
 public:
  static constexpr int most = most_axes;

  Walk() { walk_.axes = 0; }
  /// At most `most` axes, none of extent 0.
  explicit Walk(const std::vector<WalkAxis>& axes) {
    walk_.axes = static_cast<int>(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      count_ *= axes[i].extent;
      walk_.extents[i] = Divisor(axes[i].extent);
      walk_.strides[0][i] = axes[i].stride;
      walk_.strides[1][i] = axes[i].other;
    }
    walk_.large = count_ >= most_small_indices;
  }

  std::int64_t count() const { return count_; }
  TANDEM_HOST_DEVICE int rank() const { return walk_.axes; }
  /// The second operand's stride of the fastest axis; 0 where there is none.
  std::int64_t last_other_stride() const {
    return walk_.axes == 0 ? 0 : walk_.strides[1][walk_.axes - 1];
  }

  TANDEM_HOST_DEVICE std::int64_t at(std::int64_t index) const { return place<0>(index); }
  TANDEM_HOST_DEVICE std::int64_t other_at(std::int64_t index) const { return place<1>(index); }

 private:
  template <int operand>
  TANDEM_HOST_DEVICE std::int64_t place(std::int64_t index) const {
    std::int64_t places[operand + 1] = {};
    walk_.locate(0, walk_.axes, index, 1, places);
    return places[operand];
  }

  cuda::Walk<2> walk_;
  std::int64_t count_ = 1;
};

}  // namespace tandem::cuda::reductions
