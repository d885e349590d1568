// The loop of element-wise kernels: units of several neighbouring elements where operands lie so,
// single elements elsewhere. For g++, nvcc and NVRTC.
#pragma once

#include "kernels/shared/block/numbers.h"
#include "kernels/shared/block/walk.h"

namespace tandem::cuda {

/// An index space whose units the threads take in turn. `most`: how many operands have strides.
template <int most>
struct ElementSpace {
  std::int64_t units = 0;
  int width = 1;                  // elements of a unit, along the last axis
  int tail = 1;                   // elements of the last unit
  std::int64_t inner[most] = {};  // strides along the last axis
  Walk<most> walk;
};

template <int n>
struct Count {
  static constexpr int value = n;
};

/// Calls run(Count<width>, offsets) or run(Count<1>, offsets) for units first, first + step, ...
template <int width, int places, int most, class Run>
TANDEM_HOST_DEVICE inline void for_each_unit(const ElementSpace<most>& space, std::int64_t first,
                                             std::int64_t step, const Run& run) {
  for (std::int64_t unit = first; unit < space.units; unit += step) {
    std::int64_t offset[places] = {};
    space.walk.locate(0, space.walk.axes, unit, space.width, offset);
    const int count = unit + 1 < space.units ? space.width : space.tail;
    if (count == width) {
      run(Count<width>{}, offset);
      continue;
    }
    for (int i = 0; i < count; ++i) {
      run(Count<1>{}, offset);
      TANDEM_UNROLL
      for (int place = 0; place < places; ++place) offset[place] += space.inner[place];
    }
  }
}

/// `count` elements that lie `stride` apart.
template <int count, class T>
TANDEM_HOST_DEVICE inline void read(T (&to)[count], const void* from, std::int64_t offset,
                                    std::int64_t stride) {
  const T* x = static_cast<const T*>(from) + offset;
  if constexpr (count == 1) {
    to[0] = *x;
  } else if (stride == 1) {
    load(to, x);
  } else if (stride == 0) {
    const T same = *x;
    for (int i = 0; i < count; ++i) to[i] = same;
  } else {
    for (int i = 0; i < count; ++i) to[i] = x[i * stride];
  }
}

/// Units of several elements are written where they follow each other.
template <int count, class T>
TANDEM_HOST_DEVICE inline void write(void* to, std::int64_t offset, const T (&from)[count]) {
  T* y = static_cast<T*>(to) + offset;
  if constexpr (count == 1) {
    *y = from[0];
  } else {
    store(y, from);
  }
}

}  // namespace tandem::cuda
