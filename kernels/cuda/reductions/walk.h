// Places of elements under strides, by index.
#pragma once

#include <vector>

#include "kernels/cuda/pointwise/walk.h"

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
  static constexpr int most = 8;

  Walk() = default;
  /// At most `most` axes, none of extent 0.
  explicit Walk(const std::vector<WalkAxis>& axes) {
    for (const WalkAxis& axis : axes) count_ *= axis.extent;
    for (const WalkAxis& axis : axes) {
      axes_[rank_] = axis;
      divisions_[rank_++] = Division(axis.extent, count_);
    }
  }

  std::int64_t count() const { return count_; }
  TANDEM_HOST_DEVICE int rank() const { return rank_; }
  const WalkAxis& axis(int i) const { return axes_[i]; }

  TANDEM_HOST_DEVICE std::int64_t at(std::int64_t index) const {
    std::int64_t place = 0;
    for (int i = rank_ - 1; i > 0; --i) {
      std::int64_t position = index;
      index = divisions_[i].divide(position);
      place += position * axes_[i].stride;
    }
    return rank_ == 0 ? 0 : place + index * axes_[0].stride;
  }
  TANDEM_HOST_DEVICE std::int64_t other_at(std::int64_t index) const {
    std::int64_t place = 0;
    for (int i = rank_ - 1; i > 0; --i) {
      std::int64_t position = index;
      index = divisions_[i].divide(position);
      place += position * axes_[i].other;
    }
    return rank_ == 0 ? 0 : place + index * axes_[0].other;
  }

 private:
  WalkAxis axes_[most];
  Division divisions_[most];
  std::int64_t count_ = 1;
  int rank_ = 0;
};

}  // namespace tandem::cuda::reductions
