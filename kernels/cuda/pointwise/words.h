// The types that carry a number of bytes where elements are only moved.
#pragma once

#include <vector_types.h>

#include "engine/graph/size_dispatch.h"

namespace tandem::cuda {

/// Like with_size, but also for a value of 16 bytes.
template <class F>
auto with_word(int bytes, F f) {
  if (bytes > 8) return f(uint4{});
  return with_size(static_cast<std::size_t>(bytes), f);
}

}  // namespace tandem::cuda
