// Layouts that operands of a kernel may have.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/host_tensor.h"

namespace tandem::testing {

/// Row-major strides of a larger shape, from an offset.
inline Layout layout_with_gaps(const Shape& shape) {
  Shape larger = shape;
  for (std::int64_t& extent : larger) ++extent;
  Layout layout = row_major(larger);
  for (std::int64_t& stride : layout.strides) stride *= 2;
  layout.offset = 3;
  return layout;
}

inline Layout layout_in_reversed_order(const Shape& shape) {
  std::vector<int> order;
  for (std::size_t i = shape.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  return permuted(shape, order);
}

inline Layout layout_backwards(const Shape& shape) {
  Layout layout = row_major(shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    layout.offset += std::max<std::int64_t>(shape[i] - 1, 0) * layout.strides[i];
    layout.strides[i] = -layout.strides[i];
  }
  return layout;
}

inline Layout layout_channels_last(const Shape& shape) {
  return shape.size() >= 3 ? channels_last(shape) : row_major(shape);
}

struct LayoutVariant {
  const char* name;
  Layout (*layout)(const Shape&);
};
inline constexpr LayoutVariant layout_variants[] = {{"row-major", row_major},
                                                    {"reversed order", layout_in_reversed_order},
                                                    {"gaps", layout_with_gaps},
                                                    {"backwards", layout_backwards},
                                                    {"channels-last", layout_channels_last}};

/// Copies the first slice along axis 0 of each input over all others, and adds the layout with
/// stride 0 there.
inline void broadcast_first_axis(std::vector<HostTensor>& inputs, std::vector<Layout>& layouts) {
  for (HostTensor& x : inputs) {
    layouts.push_back(row_major(x.shape()));
    if (x.shape().size() < 2 || x.shape()[0] < 2 || x.bytes() == 0) continue;
    x = x.clone();
    char* bytes = static_cast<char*>(x.data());
    const std::size_t slice = x.bytes() / static_cast<std::size_t>(x.shape()[0]);
    for (std::int64_t k = 1; k < x.shape()[0]; ++k) {
      std::copy_n(bytes, slice, bytes + slice * static_cast<std::size_t>(k));
    }
    layouts.back().strides[0] = 0;
  }
}

}  // namespace tandem::testing
