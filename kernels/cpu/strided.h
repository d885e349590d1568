// Index spaces under strides: axes that are contiguous to each other in all operands become one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/device/kernel.h"

namespace tandem {

/// Strides of an operand over a space that it is broadcast to, in elements.
inline std::vector<std::int64_t> strides_over(const Operand& operand, const Shape& space) {
  std::vector<std::int64_t> strides(space.size(), 0);
  const Shape& own = operand.type.shape;
  const std::size_t skip = space.size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] != 1) strides[skip + i] = operand.layout.strides[i];
  }
  return strides;
}

struct StridedAxis {
  std::int64_t extent = 1;
  int group = 0;                      // axes of different groups stay apart
  std::vector<std::int64_t> strides;  // per operand
};

/// Merges neighbours that address alike for all operands; at least one axis remains.
inline std::vector<StridedAxis> collapse(const std::vector<StridedAxis>& axes) {
  std::vector<StridedAxis> result;
  for (const StridedAxis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!result.empty() && result.back().group == axis.group) {
      StridedAxis& last = result.back();
      bool joint = true;
      for (std::size_t k = 0; k < axis.strides.size(); ++k) {
        joint &= last.strides[k] == axis.strides[k] * axis.extent;
      }
      if (joint) {
        last.extent *= axis.extent;
        last.strides = axis.strides;
        continue;
      }
    }
    result.push_back(axis);
  }
  if (result.empty()) {
    StridedAxis one;
    if (!axes.empty()) one = axes.back();
    result.push_back(one);
  }
  return result;
}

/// The axes of `shape` from the outermost to the innermost in memory.
inline std::vector<int> memory_order(const Layout& layout, const Shape& shape) {
  std::vector<int> order;
  for (std::size_t i = 0; i < shape.size(); ++i) order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (shape[a] == 1 || shape[b] == 1) return false;
    return std::abs(layout.strides[a]) > std::abs(layout.strides[b]);
  });
  return order;
}

/// Whether the layout has no holes and no broadcast axes, in any order of axes.
inline bool is_dense(const Layout& layout, const Shape& shape) {
  if (!layout.is_strided()) return false;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1) axes.push_back({layout.strides[i], shape[i]});
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t expected = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

}  // namespace tandem
