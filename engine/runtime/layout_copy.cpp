#include "engine/runtime/layout_copy.h"

#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/graph/size_dispatch.h"

namespace tandem {
namespace {

// Calls f(place in the layout, row-major index) for each element, in row-major order.
template <class F>
void each_element(const Layout& layout, const Shape& shape, F f) {
  const std::int64_t count = element_count(shape);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t place = layout.offset;
  for (std::int64_t i = 0; i < count; ++i) {
    f(place, i);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      place += layout.strides[axis];
      if (++index[axis] < shape[axis]) break;
      place -= layout.strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

bool is_plain(const Layout& layout, const Shape& shape) {
  return layout.offset == 0 && is_row_major(layout, shape);
}

/// copy(to, from, place, i) for each element i and its place in the layout; all bytes at once where
/// they lie in order.
template <class Copy>
void copy_elements(void* to, const void* from, const Layout& layout, const TensorType& type,
                   Copy copy) {
  assert(layout.is_strided());
  if (type.bytes() == 0) return;
  if (is_plain(layout, type.shape)) {
    std::memcpy(to, from, type.bytes());
    return;
  }
  with_size(size_of(type.dtype), [&](auto tag) {
    using T = decltype(tag);
    each_element(layout, type.shape, [&](std::int64_t place, std::int64_t i) {
      copy(static_cast<T*>(to), static_cast<const T*>(from), place, i);
    });
  });
}

}  // namespace

std::size_t buffer_bytes(const TensorType& type, const Layout& layout) {
  if (!layout.is_strided()) return layout.opaque_bytes;
  return static_cast<std::size_t>(place_range(layout, type.shape).end) * size_of(type.dtype);
}

void to_layout(void* to, const Layout& layout, const void* from, const TensorType& type) {
  copy_elements(to, from, layout, type,
                [](auto* to, const auto* from, auto place, auto i) { to[place] = from[i]; });
}

void from_layout(void* to, const void* from, const Layout& layout, const TensorType& type) {
  copy_elements(to, from, layout, type,
                [](auto* to, const auto* from, auto place, auto i) { to[i] = from[place]; });
}

}  // namespace tandem
