// Row-sparse gradients on the GPU (engine/operators/tables/rows.h): where the gradient of each
// position lies, and sums over the positions of a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/operators/tables/rows.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/rows/lane_groups.h"
#include "kernels/cuda/updates/floats.h"

namespace tandem::cuda {

/// The gradients of a table's lookups, whose positions follow each other.
struct PositionGradients {
  struct Lookup {
    const void* dy;
    const void* weights;  // null: none
    std::int32_t start;   // its first position
    std::int32_t bag;     // positions in turn that share a row of dy; 1 where there is no order
    Floats weight_type;
  };
  static constexpr std::size_t most = 80;  // they travel with the launch
  Lookup lookups[most];
  int count;
  Floats type;  // type of all dy
  std::int64_t columns;
  const std::int32_t* order;  // positions, grouped by row; null: each its own

  /// The sum over order[begin, end) of columns [c, c + n), in this order, in float32.
  template <int n>
  TANDEM_HOST_DEVICE Values<n> sum(std::int64_t begin, std::int64_t end, std::int64_t c) const {
    constexpr int at_once = 4;  // loads that are on their way
    Values<n> all{};
    for (std::int64_t i = begin; i < end; i += at_once) {
      Values<n> row[at_once];
      float weight[at_once];
      TANDEM_UNROLL
      for (int k = 0; k < at_once; ++k) {
        row[k] = {};
        weight[k] = 0;
        if (i + k < end) row[k] = at<n>(i + k, c, weight[k]);
      }
      TANDEM_UNROLL
      for (int k = 0; k < at_once; ++k) {
        TANDEM_UNROLL
        for (int e = 0; e < n; ++e) {
          if (i + k < end) all.at[e] += weight[k] * row[k].at[e];
        }
      }
    }
    return all;
  }

 private:
  template <int n>
  TANDEM_HOST_DEVICE Values<n> at(std::int64_t i, std::int64_t c, float& weight) const {
    const std::int64_t position = order == nullptr ? i : order[i];
    int k = 0;
    for (int above = count; above - k > 1;) {
      const int middle = (k + above) / 2;
      (lookups[middle].start <= position ? k : above) = middle;
    }
    const Lookup& lookup = lookups[k];
    const std::int64_t own = position - lookup.start;
    const std::int64_t row = lookup.bag == 1 ? own : static_cast<std::int32_t>(own) / lookup.bag;
    weight = 1;
    if (lookup.weights != nullptr) weight = load<1>(lookup.weights, lookup.weight_type, own).at[0];
    return load<n>(lookup.dy, type, row * columns + c);
  }
};

/// The gradients among a node's inputs from `first` on.
class GradientOperands {
 public:
  GradientOperands(const KernelRequest& r, std::size_t first, std::int64_t columns)
      : lookups_(lookup_gradients(*r.node, first)) {
    gradients_.count = static_cast<int>(lookups_.size());
    gradients_.type = *floats_of(r.inputs[first].type.dtype);
    gradients_.columns = columns;
    for (std::size_t k = 0; k < lookups_.size(); ++k) {
      const LookupGradient& from = lookups_[k];
      auto& to = gradients_.lookups[k];
      to.start = static_cast<std::int32_t>(positions_);
      to.bag = static_cast<std::int32_t>(from.bag);
      if (from.weights != 0) to.weight_type = *floats_of(r.inputs[from.weights].type.dtype);
      const std::int64_t elements = r.inputs[from.dy].type.elements() * from.bag;
      positions_ += columns == 0 ? 0 : elements / columns;
    }
  }

  std::int64_t positions() const { return positions_; }
  std::int64_t columns() const { return gradients_.columns; }
  PositionGradients of(const KernelArguments& a, std::size_t order) const {
    PositionGradients now = gradients_;
    for (std::size_t k = 0; k < lookups_.size(); ++k) {
      now.lookups[k].dy = a.inputs[lookups_[k].dy];
      const std::size_t weights = lookups_[k].weights;
      now.lookups[k].weights = weights == 0 ? nullptr : a.inputs[weights];
    }
    now.order = static_cast<const std::int32_t*>(a.inputs[order]);
    return now;
  }

 private:
  std::vector<LookupGradient> lookups_;
  PositionGradients gradients_{};
  std::int64_t positions_ = 0;
};

/// Whether four columns at a time may be read.
inline bool takes_four(const PositionGradients& gradients) {
  bool takes = gradients.columns % 4 == 0;
  for (int k = 0; k < gradients.count; ++k) {
    takes = takes && is_aligned(gradients.lookups[k].dy, 4 * size_of(gradients.type));
  }
  return takes;
}

inline std::optional<std::string> refuse_gradients(const KernelRequest& r, std::size_t first) {
  const std::vector<LookupGradient> lookups = lookup_gradients(*r.node, first);
  if (lookups.size() > PositionGradients::most)
    return "more than " + std::to_string(PositionGradients::most) + " lookups of one table";
  const DType dtype = r.inputs[first].type.dtype;
  if (!floats_of(dtype)) return "gradients of " + std::string(name_of(dtype));
  for (const LookupGradient& lookup : lookups) {
    if (lookup.weights == 0) continue;
    const DType weights = r.inputs[lookup.weights].type.dtype;
    if (!floats_of(weights)) return "weights of " + std::string(name_of(weights));
  }
  return std::nullopt;
}

}  // namespace tandem::cuda
