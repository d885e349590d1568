#include "kernels/cuda/pointwise/axes.h"

#include <algorithm>
#include <cstdlib>

namespace tandem::cuda {

std::vector<std::int64_t> strides_over(const Operand& operand, const Shape& space) {
  std::vector<std::int64_t> strides(space.size(), 0);
  const Shape& own = operand.type.shape;
  const std::size_t lead = space.size() - own.size();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] != 1) strides[lead + i] = operand.layout.strides[i];
  }
  return strides;
}

std::vector<std::int64_t> strides_over(const std::vector<std::int64_t>& strides,
                                       const Shape& shape) {
  std::vector<std::int64_t> result = strides;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) result[i] = 0;
  }
  return result;
}

std::vector<int> memory_order(const std::vector<std::int64_t>& strides, const Shape& shape) {
  std::vector<int> order;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) order.push_back(static_cast<int>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(strides[a]) > std::abs(strides[b]); });
  return order;
}

std::int64_t AxisPlan::elements() const {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

int AxisPlan::axes_of(int group) const {
  return static_cast<int>(std::count(groups.begin(), groups.end(), group));
}

std::int64_t AxisPlan::elements_of(int group) const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (groups[i] == group) count *= extents[i];
  }
  return count;
}

AxisPlan plan_axes(const Shape& shape, const std::vector<int>& order,
                   const std::vector<std::vector<std::int64_t>>& strides,
                   const std::vector<int>& groups) {
  AxisPlan plan;
  plan.strides.resize(strides.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int axis = order[i], group = groups.empty() ? 0 : groups[i];
    bool joint = !plan.extents.empty() && plan.groups.back() == group;
    for (std::size_t k = 0; joint && k < strides.size(); ++k) {
      joint = plan.strides[k].back() == strides[k][axis] * shape[axis];
    }
    if (joint) {
      plan.extents.back() *= shape[axis];
    } else {
      plan.extents.push_back(shape[axis]);
      plan.groups.push_back(group);
    }
    for (std::size_t k = 0; k < strides.size(); ++k) {
      if (joint)
        plan.strides[k].back() = strides[k][axis];
      else
        plan.strides[k].push_back(strides[k][axis]);
    }
  }
  if (plan.extents.empty()) {
    plan.extents.push_back(1);
    plan.groups.push_back(0);
    for (auto& own : plan.strides) own.push_back(0);
  }
  return plan;
}

bool takes_width(const AxisPlan& plan, std::size_t operand, int width) {
  if (plan.axes() > 1 && plan.extents.back() % width != 0) return false;
  const std::vector<std::int64_t>& strides = plan.strides[operand];
  if (strides.back() != 1) return true;
  return std::all_of(strides.begin(), strides.end() - 1,
                     [&](std::int64_t stride) { return stride % width == 0; });
}

}  // namespace tandem::cuda
