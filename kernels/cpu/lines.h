// One axis of a row-major tensor as lines: in place where the axis is the last one, else through a
// buffer.
#pragma once

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/vector_functions.h"

namespace tandem {

struct Lines {
  std::int64_t length = 1, inner = 1, count = 1;  // [count / inner, length, inner]

  Lines() = default;
  Lines(const Shape& shape, std::size_t axis) : length(shape[axis]) {
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    count = length == 0 ? 0 : element_count(shape) / length;
  }

  std::int64_t start(std::int64_t line) const {
    return line / inner * length * inner + line % inner;
  }
  const float* read(const void* data, std::int64_t line, float* buffer) const {
    const float* x = static_cast<const float*>(data) + start(line);
    if (inner == 1) return x;
    for (std::int64_t i = 0; i < length; ++i) buffer[i] = x[i * inner];
    return buffer;
  }
  /// Where to write line `line`; `written` brings the buffer to its place.
  float* target(void* data, std::int64_t line, float* buffer) const {
    return inner == 1 ? static_cast<float*>(data) + start(line) : buffer;
  }
  void written(void* data, std::int64_t line, const float* buffer) const {
    if (inner == 1) return;
    float* y = static_cast<float*>(data) + start(line);
    for (std::int64_t i = 0; i < length; ++i) y[i * inner] = buffer[i];
  }

  /// Floats of one buffer, a multiple of a cache line.
  std::int64_t buffer_floats() const { return inner == 1 ? 0 : (length + 15) / 16 * 16; }
};

}  // namespace tandem
