// How many elements some axes of a shape have.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// The number of elements along the axes from `first` to before `last`.
inline std::int64_t elements_of(const Shape& shape, std::size_t first, std::size_t last) {
  std::int64_t count = 1;
  for (std::size_t axis = first; axis < last; ++axis) count *= shape[axis];
  return count;
}

}  // namespace tandem::importer::operators
