// Copies whose axes are mapped: Pad and its gradient, the gradient of Slice, Trilu.
#pragma once

#include "kernels/cuda/context.h"
#include "kernels/shared/block/walk.h"

namespace tandem::cuda {

/// The index in the source from which index i of the whole is taken; -1: none.
struct AxisMap {
  enum class Kind : std::uint8_t {
    inside,   // (i - start) / step, where that is a whole number in [0, extent)
    edge,     // the nearest one; here and below of i - start, with step 1
    reflect,  // mirrored at the first and the last one
    wrap,     // modulo the extent
  };
  Kind kind = Kind::inside;
  std::int64_t start = 0, step = 1;
  std::int64_t extent = 1;  // extent of the source
};

/// The walk over what is written, in units of words or elements.
struct MappedArguments {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t units = 0;
  int axes = 1;        // outermost first
  bool large = false;  // units of 2^31 or more
  Divisor extents[most_axes];
  AxisMap maps[most_axes];
  std::int64_t from_strides[most_axes] = {}, to_strides[most_axes] = {};
};

/// y[i] = x[map(i)], or the border where the map gives none, and outside of the triangle. In words.
struct MappedCopyArguments : MappedArguments {
  std::uint64_t border = 0;             // its bytes, repeated
  int row_axis = -1, column_axis = -1;  // axes of the triangle; -1: there is none
  bool upper = false;                   // column - row >= diagonal, else <= diagonal
  std::int64_t diagonal = 0;
};

/// `word`: 1, 2, 4, 8 or 16 bytes.
void launch_mapped_copy(GpuContext& gpu, const MappedCopyArguments& arguments, int word,
                        const LaunchShape& shape, void* queue);

/// dx[j] = the sum of dy over all indices i that the maps take to j. From dy to dx, in elements.
struct MappedSumArguments : MappedArguments {
  std::int64_t wholes[most_axes] = {};  // extents of dy
};

/// For types of numbers; bool counts as a number of one byte.
void launch_mapped_sum(GpuContext& gpu, const MappedSumArguments& arguments, DType dtype,
                       const LaunchShape& shape, void* queue);

}  // namespace tandem::cuda
