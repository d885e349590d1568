// Index spaces under strides: axes that follow each other for all operands become one.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/kernel.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/pointwise/elements.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

/// Strides of an operand over a space that it is broadcast to, in elements.
std::vector<std::int64_t> strides_over(const Operand& operand, const Shape& space);
/// As above, for an operand of that very shape; an axis of one element has stride 0.
std::vector<std::int64_t> strides_over(const std::vector<std::int64_t>& strides,
                                       const Shape& shape);

/// Axes from the outermost to the innermost in memory, without those of one element.
std::vector<int> memory_order(const std::vector<std::int64_t>& strides, const Shape& shape);

/// Axes of operands, outermost first; at least one. Axes of different groups stay apart.
struct AxisPlan {
  std::vector<std::int64_t> extents;
  std::vector<int> groups;
  std::vector<std::vector<std::int64_t>> strides;  // per operand

  int axes() const { return static_cast<int>(extents.size()); }
  std::int64_t elements() const;
  /// Axes of a group, which follow each other.
  int axes_of(int group) const;
  std::int64_t elements_of(int group) const;
};

/// `strides` per operand, each over all axes of `shape`; `groups` per entry of `order`, or empty.
AxisPlan plan_axes(const Shape& shape, const std::vector<int>& order,
                   const std::vector<std::vector<std::int64_t>>& strides,
                   const std::vector<int>& groups = {});

/// Whether units of `width` elements along the last axis can be read: none crosses its end but for
/// the last of all, and where the operand's elements follow each other, each unit begins at a
/// multiple of `width`.
bool takes_width(const AxisPlan& plan, std::size_t operand, int width);

inline int axis_count(const Shape& shape) {
  int count = 0;
  for (std::int64_t extent : shape) count += extent != 1;
  return count;
}

/// Axes that kernels have room for.
inline std::optional<std::string> refuse_axes(const Shape& shape) {
  if (axis_count(shape) > most_axes) return "more than " + std::to_string(most_axes) + " axes";
  return std::nullopt;
}

/// `operand_of` gives the operand of each place. The last of the axes counts units of `width`.
template <int most>
Walk<most> make_walk(const AxisPlan& plan, const std::vector<std::size_t>& operand_of, int width) {
  Walk<most> walk;
  walk.axes = plan.axes();
  walk.large = plan.elements() >= most_small_indices;
  for (int a = 0; a < plan.axes(); ++a) {
    const bool last = a + 1 == plan.axes();
    walk.extents[a] = Divisor(last ? (plan.extents[a] + width - 1) / width : plan.extents[a]);
    for (std::size_t place = 0; place < operand_of.size(); ++place) {
      walk.strides[place][a] = plan.strides[operand_of[place]][a];
    }
  }
  return walk;
}

template <int most>
ElementSpace<most> make_space(const AxisPlan& plan, const std::vector<std::size_t>& operand_of,
                              int width) {
  ElementSpace<most> space;
  const std::int64_t elements = plan.elements(), last = plan.extents.back();
  space.width = width;
  space.units = last == 0 ? 0 : elements / last * ((last + width - 1) / width);
  space.tail = last % width == 0 ? width : static_cast<int>(last % width);
  space.walk = make_walk<most>(plan, operand_of, width);
  for (std::size_t place = 0; place < operand_of.size(); ++place) {
    space.inner[place] = plan.strides[operand_of[place]].back();
  }
  return space;
}

}  // namespace tandem::cuda
