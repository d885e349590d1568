// Images: the last two axes of a sample, after which functions of images are alike.
#pragma once

#include <algorithm>

#include "engine/data/functions/field_function.h"

namespace tandem {

/// The planes that the last two axes make: how many, and their extents.
struct Planes {
  std::int64_t count, height, width;
  explicit Planes(const Shape& shape)
      : count(1), height(shape[shape.size() - 2]), width(shape.back()) {
    for (std::size_t axis = 0; axis + 2 < shape.size(); ++axis) count *= shape[axis];
  }
};

/// A function that gives images of one size.
struct ImageFunction : FieldFunction {
  std::int64_t height = 0, width = 0;

  TensorType type_of(const TensorType& from) const override {
    TensorType to = from;
    if (to.shape.size() < 2)
      throw std::invalid_argument("an image has two axes at least, this is " + to_string(from));
    std::int64_t& own_height = to.shape[to.shape.size() - 2];
    std::int64_t& own_width = to.shape.back();
    if (own_height < 1 || own_width < 1)
      throw std::invalid_argument("an empty image: " + to_string(from));
    own_height = height;
    own_width = width;
    return to;
  }
  /// From `(size)` or `(height, width)`.
  void read_size(Call& call, const char* usage) {
    call.count(1, 2, usage);
    height = whole(call.number(0), 1, "the height");
    width = whole(call.number(call.size() - 1), 1, "the width");
  }
};

}  // namespace tandem
