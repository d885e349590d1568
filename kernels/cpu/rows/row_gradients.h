// The gradients of look-ups as kernels get them: dy's, and the groups of their positions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/runtime/kernel.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {

inline std::int64_t row_elements(const Shape& table) {
  return element_count(Shape(table.begin() + 1, table.end()));
}

/// The dy's of a node from input `first` on, and how they are grouped.
class GradientOperands {
 public:
  GradientOperands(const KernelRequest& r, std::size_t first, std::int64_t columns)
      : first_(first) {
    rows_.columns = columns;
    rows_.bfloat16 = r.inputs[first].type.dtype == DType::bfloat16;
    for (std::size_t i = first; i < r.inputs.size(); ++i) {
      arrays_.push_back(
          {nullptr, r.inputs[i].type.elements() / std::max<std::int64_t>(columns, 1), columns});
    }
    rows_.count = static_cast<int>(arrays_.size());
  }

  std::int64_t columns() const { return rows_.columns; }
  const RowGradients& of(const KernelArguments& a, std::size_t order, std::size_t offsets,
                         std::size_t count) {
    for (std::size_t k = 0; k < arrays_.size(); ++k) arrays_[k].data = a.inputs[first_ + k];
    rows_.arrays = arrays_.data();
    rows_.order = static_cast<const std::int32_t*>(a.inputs[order]);
    rows_.offsets = static_cast<const std::int32_t*>(a.inputs[offsets]);
    rows_.groups = *static_cast<const std::int32_t*>(a.inputs[count]);
    return rows_;
  }

 private:
  std::size_t first_;
  std::vector<GradientArray> arrays_;
  RowGradients rows_;
};

inline std::optional<std::string> refuse_gradients(const KernelRequest& r, std::size_t first) {
  const DType dtype = r.inputs[first].type.dtype;
  if (dtype == DType::float32 || dtype == DType::bfloat16) return std::nullopt;
  return "gradients of " + std::string(name_of(dtype));
}

}  // namespace tandem
