// Indices as Gather has them: negative ones count from the end, one value names no place.
#pragma once

#include "engine/operators/tables/rows.h"
#include "kernels/reference/support.h"

namespace tandem::reference {

/// An index into `extent` elements as Gather has it: -1 for an absent one; one that is out of range
/// is reported and clamped.
inline std::int64_t checked_index(const void* indices, std::int64_t place, DType dtype,
                                  std::int64_t extent, std::int32_t node,
                                  const StepContext* context) {
  const std::int64_t given = dtype == DType::int64
                                 ? static_cast<const std::int64_t*>(indices)[place]
                                 : static_cast<const std::int32_t*>(indices)[place];
  if (given == absent_id_of(dtype)) return -1;
  const std::int64_t index = given < 0 ? given + extent : given;
  if (index >= 0 && index < extent) return index;
  if (context != nullptr && context->error != nullptr) {
    context->error->report(ErrorWord::index_out_of_range, node, given);
  }
  return index < 0 ? 0 : extent - 1;
}

}  // namespace tandem::reference
