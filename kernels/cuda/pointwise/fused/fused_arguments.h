// Arguments of fused kernels, as the host fills them and the generated code reads them. For g++,
// nvcc and NVRTC.
#pragma once

#include "kernels/cuda/pointwise/elements.h"

namespace tandem::cuda {

inline constexpr int most_fused_operands = 32;
inline constexpr int fused_threads = 256;
inline constexpr int column_lanes = 32;  // threads side by side in a block that sums up columns

/// Kept axes come first in `space.walk`, then reduced ones; a unit of `space.width` elements lies
/// along the last axis of the operands' memory, which a body knows to be kept or reduced.
struct FusedArguments {
  void* operands[most_fused_operands] = {};  // inputs, then outputs; null: is not written
  ElementSpace<most_fused_operands> space;
  // Only for reductions:
  int kept_axes = 0;
  int lanes = 1;             // threads that share a row, a power of 2
  std::int64_t kept = 0;     // rows, or units of columns
  std::int64_t reduced = 0;  // units of a row, or elements of a column
  std::int64_t part = 0;  // how many of them are in a part of the sum; blocks along y are the parts
  std::int64_t kept_elements = 0;
  double scale = 1;            // factor of the sum: 1 / n for a mean
  double* partial = nullptr;   // [parts, kept_elements]; null: there is one part
  const void* host = nullptr;  // what emulates the kernel; GPUs do not look at it
};

}  // namespace tandem::cuda
