// Functions that change the bytes of a picture at random.
#pragma once

#include <cstring>
#include <vector>

#include "engine/data/functions/field_function.h"
#include "engine/data/images/pixel_operations.h"

namespace tandem {

/// Takes [height, width], [1, height, width] or [3, height, width] of bytes and keeps the type.
struct PixelFunction : FieldFunction {
  /// Changes the picture; `scratch` has room for another one.
  virtual void change(Pixels picture, RandomStream& random, std::uint8_t* scratch) const = 0;

  TensorType type_of(const TensorType& from) const final {
    const std::size_t axes = from.shape.size();
    const bool is_picture = axes == 2 || (axes == 3 && (from.shape[0] == 1 || from.shape[0] == 3));
    if (from.dtype != DType::uint8 || !is_picture || from.elements() == 0) {
      throw std::invalid_argument(
          "acts on pictures of bytes, uint8 [1 or 3, height, width], this is " + to_string(from));
    }
    return from;
  }
  void run(const SampleArray& sample) const final {
    thread_local std::vector<std::uint8_t> scratch;
    const auto bytes = static_cast<std::size_t>(sample.elements());
    if (scratch.size() < bytes) scratch.resize(bytes);
    std::memcpy(sample.result, sample.values, bytes);
    const Shape& shape = sample.type.shape;
    const std::int64_t channels = shape.size() == 2 ? 1 : shape[0];
    RandomStream random = sample.random();
    change({sample.to<std::uint8_t>(), channels, shape[shape.size() - 2], shape.back()}, random,
           scratch.data());
  }
};

}  // namespace tandem
