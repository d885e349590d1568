#include "engine/graph/types.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "engine/graph/text.h"

namespace tandem {
namespace {

enum class TypeClass : std::uint8_t { floating, integer, boolean, float8 };

struct Info {
  std::string_view name;
  std::size_t size;
  TypeClass type_class;
};

constexpr std::array<Info, dtype_count> infos{{{"float32", 4, TypeClass::floating},
                                               {"float64", 8, TypeClass::floating},
                                               {"float16", 2, TypeClass::floating},
                                               {"bfloat16", 2, TypeClass::floating},
                                               {"int8", 1, TypeClass::integer},
                                               {"int16", 2, TypeClass::integer},
                                               {"int32", 4, TypeClass::integer},
                                               {"int64", 8, TypeClass::integer},
                                               {"uint8", 1, TypeClass::integer},
                                               {"uint16", 2, TypeClass::integer},
                                               {"uint32", 4, TypeClass::integer},
                                               {"uint64", 8, TypeClass::integer},
                                               {"bool", 1, TypeClass::boolean},
                                               {"float8_e4m3fn", 1, TypeClass::float8},
                                               {"float8_e4m3fnuz", 1, TypeClass::float8},
                                               {"float8_e5m2", 1, TypeClass::float8},
                                               {"float8_e5m2fnuz", 1, TypeClass::float8},
                                               {"float8_e8m0fnu", 1, TypeClass::float8}}};

const Info& info(DType dtype) { return infos[static_cast<std::size_t>(dtype)]; }

std::string list_text(const std::vector<std::int64_t>& numbers) {
  return "[" + joined(numbers, ", ", [](std::int64_t n) { return std::to_string(n); }) + "]";
}

}  // namespace

std::size_t size_of(DType dtype) { return info(dtype).size; }
std::string_view name_of(DType dtype) { return info(dtype).name; }
bool is_float(DType dtype) { return info(dtype).type_class == TypeClass::floating; }
bool is_integer(DType dtype) { return info(dtype).type_class == TypeClass::integer; }
bool is_float8(DType dtype) { return info(dtype).type_class == TypeClass::float8; }

std::string dtype_names() {
  return joined(infos, ", ", [](const Info& of) { return std::string(of.name); });
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) { return list_text(shape); }

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const std::int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[i] = x == 1 ? y : x;
  }
  return result;
}

std::string to_string(const TensorType& type) {
  return std::string(name_of(type.dtype)) + to_string(type.shape);
}

Layout permuted(const Shape& shape, const std::vector<int>& order) {
  assert(order.size() == shape.size());
  Layout layout;
  layout.strides.resize(shape.size());
  std::int64_t stride = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    layout.strides[*axis] = stride;
    stride *= shape[*axis];
  }
  return layout;
}

Layout row_major(const Shape& shape) {
  std::vector<int> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  return permuted(shape, order);
}

Layout channels_last(const Shape& shape) {
  assert(shape.size() >= 3);
  std::vector<int> order{0};
  for (std::size_t i = 2; i < shape.size(); ++i) order.push_back(static_cast<int>(i));
  order.push_back(1);
  return permuted(shape, order);
}

bool same_places(const Layout& a, const Layout& b, const Shape& shape) {
  if (a.token != b.token) return false;
  if (!a.is_strided()) return true;
  if (a.offset != b.offset) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return true;
    if (shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

bool is_row_major(const Layout& layout, const Shape& shape) {
  if (!layout.is_strided()) return false;
  Layout plain = row_major(shape);
  plain.offset = layout.offset;
  return same_places(layout, plain, shape);
}

bool is_channels_last(const Layout& layout, const Shape& shape) {
  if (!layout.is_strided() || shape.size() < 3) return false;
  Layout last = channels_last(shape);
  last.offset = layout.offset;
  return same_places(layout, last, shape);
}

PlaceRange place_range(const Layout& layout, const Shape& shape) {
  assert(layout.is_strided());
  PlaceRange range{layout.offset, layout.offset + 1};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return {};
    const std::int64_t reach = (shape[i] - 1) * layout.strides[i];
    (reach < 0 ? range.begin : range.end) += reach;
  }
  return range;
}

std::int64_t span_elements(const Layout& layout, const Shape& shape) {
  const PlaceRange range = place_range(layout, shape);
  return range.end - range.begin;
}

std::string to_string(const Layout& layout) {
  if (!layout.is_strided()) return "opaque(" + layout.token + ")";
  std::string text = "strides" + list_text(layout.strides);
  if (layout.offset != 0) text += "+" + std::to_string(layout.offset);
  return text;
}

}  // namespace tandem
