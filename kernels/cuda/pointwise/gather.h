// Gather and its gradient on any axis: x is [outer, rows, inner], y is [outer, count, inner].
#pragma once

#include "kernels/cuda/context.h"
#include "kernels/cuda/rows/ids.h"
#include "kernels/shared/block/walk.h"

namespace tandem::cuda {

/// Indices into an axis of `rows` elements, and where those that are out of range are reported.
struct Indices {
  IdArray ids;
  IdReport report;
  std::int64_t count = 0, rows = 1;

  /// The row in [0, rows), or -1 for an absent index. `tells`: reports an index that is out of
  /// range.
  TANDEM_HOST_DEVICE std::int64_t at(std::int64_t k, bool tells) const {
    return row_of(ids, k, rows, tells ? &report : nullptr);
  }
};

struct GatherArguments {
  const void* x = nullptr;
  void* y = nullptr;
  Indices indices;
  std::int64_t units = 0;  // units of y
  bool large = false;      // units of 2^31 or more
  Divisor inner;           // words, or elements, of a row
  Divisor count;           // number of indices
};

/// `word`: 1, 2, 4, 8 or 16 bytes.
void launch_gather(GpuContext& gpu, const GatherArguments& arguments, int word,
                   const LaunchShape& shape, void* queue);
/// y in another float type; units are elements.
void launch_gather_converted(GpuContext& gpu, const GatherArguments& arguments, DType from,
                             DType to, const LaunchShape& shape, void* queue);

/// dx[o, r, i] = the sum of dy[o, k, i] over all k with indices[k] = r.
struct GatherGradArguments {
  const void* dy = nullptr;
  void* dx = nullptr;
  Indices indices;
  std::int64_t outer = 1;
  Divisor inner;  // units of a row
  // For grouped indices (kernels/cuda/rows/group_ids.h):
  const std::int64_t* unique = nullptr;   // rows
  const std::int32_t* order = nullptr;    // positions of dy by row
  const std::int32_t* offsets = nullptr;  // where those of a row begin
  const std::int32_t* count = nullptr;    // number of rows in `unique`
  std::int64_t capacity = 0;              // rows that `unique` has room for
};

/// More indices than these are grouped first.
inline constexpr std::int64_t most_direct_indices = 64;

/// `wide`: units of 16 bytes; only for short floats. Each element of dx looks at all indices.
void launch_gather_grad_direct(GpuContext& gpu, const GatherGradArguments& arguments, DType dtype,
                               bool wide, void* queue);
/// Each element of dx adds up its group, if there is one; dx holds zeros before.
void launch_gather_grad_grouped(GpuContext& gpu, const GatherGradArguments& arguments, DType dtype,
                                bool wide, void* queue);

}  // namespace tandem::cuda
