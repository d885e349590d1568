// Element types, shapes and storage layouts of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "include/tandem/dtype.h"

namespace tandem {

inline constexpr int dtype_count = static_cast<int>(DType::float8_e8m0fnu) + 1;

std::size_t size_of(DType dtype);  // bytes per element
std::string_view name_of(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
/// float16, bfloat16, float32 and float64: what gradients flow through. 8-bit floats do not count.
bool is_float(DType dtype);
bool is_integer(DType dtype);  // 8 to 64 bits; bool does not count
bool is_float8(DType dtype);
/// "float32, float64, ...": all names, for messages that list what there is.
std::string dtype_names();

/// Extents, outermost first; empty for a scalar. Always static and >= 0.
using Shape = std::vector<std::int64_t>;

std::int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "[2, 3]"
/// The broadcast shape by numpy's rule, or nothing where the two do not fit.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

struct TensorType {
  DType dtype = DType::float32;
  Shape shape;

  std::int64_t elements() const { return element_count(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  std::size_t rank() const { return shape.size(); }
  bool operator==(const TensorType&) const = default;
};
std::string to_string(const TensorType& type);  // "float32[2, 3]"

/// Where the elements of a value lie in its buffer. Strided: element (i0, i1, ...) is at
/// offset + sum(i_k * strides[k]), counted in elements; a broadcast axis has stride 0. Opaque: a
/// format that only the kernels which know `token` can read; padding is zero; offset is 0.
struct Layout {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
  std::string token;             // empty = strided
  std::size_t opaque_bytes = 0;  // size of an opaque buffer

  bool is_strided() const { return token.empty(); }
  bool operator==(const Layout&) const = default;
};

Layout row_major(const Shape& shape);
/// N, spatial..., C order in memory for a logical [N, C, spatial...] shape (rank >= 3).
Layout channels_last(const Shape& shape);
/// A dense permutation: `order` lists the axes from outermost to innermost in memory.
Layout permuted(const Shape& shape, const std::vector<int>& order);
/// Same elements at the same places, ignoring strides of axes with extent 1 and offset 0 demanded.
bool is_row_major(const Layout& layout, const Shape& shape);
bool is_channels_last(const Layout& layout, const Shape& shape);
/// True where two layouts address the same element for every index (axes of extent 1 are free).
bool same_places(const Layout& a, const Layout& b, const Shape& shape);
/// Places in a buffer, half-open.
struct PlaceRange {
  std::int64_t begin = 0, end = 0;
};
/// From the lowest to the highest place of an element, whichever way the strides go; nothing where
/// there is no element.
PlaceRange place_range(const Layout& layout, const Shape& shape);
/// How many places lie in that range.
std::int64_t span_elements(const Layout& layout, const Shape& shape);
std::string to_string(const Layout& layout);

}  // namespace tandem
