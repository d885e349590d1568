// Layouts of operands that are neither row-major nor aligned.
#pragma once

#include <vector>

#include "engine/graph/types.h"

namespace tandem::testing {

/// A layout with the axes in reverse order in memory.
inline Layout reversed_order(const Shape& shape) {
  std::vector<int> order;
  for (std::size_t i = shape.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  return permuted(shape, order);
}

/// Rows of a larger tensor, at an offset that is not a multiple of 16 bytes.
inline Layout sliced(const Shape& shape) {
  Shape larger = shape;
  for (std::int64_t& extent : larger) ++extent;
  Layout layout = row_major(larger);
  layout.offset = 1;
  return layout;
}

struct NamedLayout {
  const char* name;
  Layout (*layout)(const Shape&);
};

}  // namespace tandem::testing
