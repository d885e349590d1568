// Pooling on the GPU: geometry and launches.
#pragma once

#include <cstdint>

#include "engine/graph/types.h"
#include "kernels/cuda/context.h"

namespace tandem::cuda {

enum class PoolingKind : std::uint8_t { maximum, maximum_gradient, average, average_gradient };

/// The windows along one axis. Tap k of window o lies at o * stride - pad_begin + k * dilation.
struct PoolingAxis {
  int in = 1, out = 1, window = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

/// Where the elements of a map [N, C, i, j, k] lie.
struct PoolingMap {
  std::int64_t image = 0, channel = 0, axis[3] = {};  // strides in elements
};

struct Pooling {
  PoolingKind kind = PoolingKind::maximum;
  DType dtype = DType::float32;
  std::int64_t images = 0, channels = 0;
  PoolingAxis axes[3];  // missing ones come first
  PoolingMap x, y, dx, dy, indices;
  bool count_padding = false;  // averages count padding
  bool column_major = false;   // indices are column-major
  /// Channels are neighbours in all maps: then they are the innermost axis of the walk.
  bool channels_inside = false;
};

/// The addresses that the kind needs; `indices` may be null.
struct PoolingAddresses {
  const void* x = nullptr;
  const void* y_read = nullptr;
  const void* dy = nullptr;
  void* y = nullptr;
  void* dx = nullptr;
  std::int64_t* indices = nullptr;
};

/// Float types; the maximum also int8 and uint8.
void run_pooling(GpuContext& gpu, const Pooling& pooling, const PoolingAddresses& at, void* queue);
/// Only for the two gradients.
void run_pooling_gradient(GpuContext& gpu, const Pooling& pooling, const PoolingAddresses& at,
                          void* queue);

}  // namespace tandem::cuda
