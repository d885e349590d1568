// Layouts of operands that are neither row-major nor aligned.
#pragma once

#include <vector>

#include "engine/graph/types.h"

namespace tandem::testing {

/// Axes in memory from the last to the first.
inline Layout reversed_order(const Shape& shape) {
  std::vector<int> order;
  for (std::size_t i = shape.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  return permuted(shape, order);
}

/// Rows of a larger tensor, from an offset that is no multiple of 16 bytes.
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
