// How rows are distributed over threads: neighbouring threads, a power of two of them, share a row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/graph/types.h"

namespace tandem::cuda {

/// Threads that share a row of that many units, where a unit is what one of them reads at a time.
inline int lanes_for(std::int64_t units, int most = 32) {
  int lanes = 1;
  while (lanes < units && lanes < most) lanes *= 2;
  return lanes;
}

/// Elements of a row: the product of all extents but the first.
inline std::int64_t row_elements(const Shape& table) {
  return element_count(Shape(table.begin() + 1, table.end()));
}

}  // namespace tandem::cuda
