// Pooling over three axes: what the instruction sets implement and the lists choose from.
#pragma once

#include <cstdint>

namespace tandem {

enum class PoolingKind : std::uint8_t { maximum, maximum_gradient, average, average_gradient };

struct PoolingAxis {
  std::int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

struct Pooling {
  PoolingKind kind = PoolingKind::maximum;
  PoolingAxis depth, rows, columns;  // from the outermost one in memory to the innermost one
  bool is_deep = false;              // `depth` is more than one position
  bool count_padding = false;
  /// Neighbours in memory that are pooled alike, such as channels: the distance from one position
  /// of a row to the next, in elements.
  std::int64_t lanes = 1;
};

/// `count` lanes of one map. Gradients write all of dx; `x` and `y` are read for maxima only.
struct PoolingMap {
  const Pooling* pooling;
  const float* x;
  float* dx;
  const float* dy;
  const float* y_read;
  float* y;
  std::int64_t count;
};
void pool_map_avx2(const PoolingMap& map);
void pool_map_avx512(const PoolingMap& map);

}  // namespace tandem
