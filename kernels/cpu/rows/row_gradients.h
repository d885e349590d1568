// The gradients of lookups as kernels get them: dy's, and the groups of their positions.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "engine/device/kernel.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {

inline std::int64_t row_elements(const Shape& table) {
  return element_count(Shape(table.begin() + 1, table.end()));
}

/// The dy's of a node from input `first` on, and how they are grouped.
class GradientOperands {
 public:
  GradientOperands(const KernelRequest& r, std::size_t first, std::int64_t columns)
      : lookups_(lookup_gradients(*r.node, first)) {
    rows_.columns = columns;
    rows_.bfloat16 = r.inputs[first].type.dtype == DType::bfloat16;
    for (const LookupGradient& lookup : lookups_) {
      const std::int64_t elements = r.inputs[lookup.dy].type.elements() * lookup.bag;
      GradientArray array;
      array.rows = elements / std::max<std::int64_t>(columns, 1);
      array.stride = columns;
      array.share = 1.0 / static_cast<double>(lookup.bag);
      arrays_.push_back(array);
    }
    rows_.count = static_cast<int>(arrays_.size());
  }

  std::int64_t columns() const { return rows_.columns; }
  const RowGradients& of(const KernelArguments& a, std::size_t order, std::size_t offsets,
                         std::size_t count) {
    for (std::size_t k = 0; k < arrays_.size(); ++k) {
      arrays_[k].data = a.inputs[lookups_[k].dy];
      if (lookups_[k].weights != 0)
        arrays_[k].weights = static_cast<const float*>(a.inputs[lookups_[k].weights]);
    }
    rows_.arrays = arrays_.data();
    rows_.order = static_cast<const std::int32_t*>(a.inputs[order]);
    rows_.offsets = static_cast<const std::int32_t*>(a.inputs[offsets]);
    rows_.groups = *static_cast<const std::int32_t*>(a.inputs[count]);
    return rows_;
  }

 private:
  std::vector<LookupGradient> lookups_;
  std::vector<GradientArray> arrays_;
  RowGradients rows_;
};

inline std::optional<std::string> refuse_weights(const KernelRequest& r, std::size_t first) {
  for (const LookupGradient& lookup : lookup_gradients(*r.node, first)) {
    if (lookup.weights != 0 && r.inputs[lookup.weights].type.dtype != DType::float32)
      return "weights that are not float32";
  }
  return std::nullopt;
}

inline std::optional<std::string> refuse_gradients(const KernelRequest& r, std::size_t first) {
  const DType dtype = r.inputs[first].type.dtype;
  if (dtype == DType::float32 || dtype == DType::bfloat16) return std::nullopt;
  return "gradients of " + std::string(name_of(dtype));
}

}  // namespace tandem
