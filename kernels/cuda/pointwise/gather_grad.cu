// GatherGrad: every element of the result is one thread's sum, in the order of the indices.
#pragma nv_diag_suppress 186  // x < 0 of unsigned integers, in functions of all numbers
#include <algorithm>
#include <type_traits>

#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/gather.h"
#include "kernels/cuda/pointwise/pointwise_kernel.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda {
namespace {

template <class T, int width>
struct Sum {
  using Computed = ComputedType<T>;
  Computed values[width] = {};

  TANDEM_HOST_DEVICE void add(const T (&more)[width]) {
    for (int i = 0; i < width; ++i) {
      values[i] = scalar::add<Computed>(values[i], widened(more[i]));
    }
  }
  TANDEM_HOST_DEVICE void store_result(void* result, std::int64_t unit) const {
    T narrow[width];
    for (int i = 0; i < width; ++i) narrow[i] = stored<T>(values[i]);
    write(result, unit * width, narrow);
  }
};

template <class T, int width>
struct DirectKernel {
  GatherGradArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t inner = p.inner.extent, units = p.outer * p.indices.rows * inner;
    each_index(block, units, [&](std::int64_t unit) {
      const std::int64_t own_row = unit / inner, row = own_row % p.indices.rows;
      const std::int64_t dy = own_row / p.indices.rows * p.indices.count * inner + unit % inner;
      Sum<T, width> sum;
      for (std::int64_t k = 0; k < p.indices.count; ++k) {
        if (p.indices.at(k, unit == 0) != row) continue;
        T more[width];
        read(more, p.dy, (dy + k * inner) * width, 1);
        sum.add(more);
      }
      sum.store_result(p.dx, unit);
    });
  }
};

// Several rows are read before the first is added.
template <class T, int width>
struct GroupedKernel {
  GatherGradArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t inner = p.inner.extent, units = p.outer * p.capacity * inner;
    each_index(block, units, [&](std::int64_t unit) {
      const std::int64_t group = unit / inner % p.capacity, outer = unit / inner / p.capacity;
      if (group >= *p.count) return;
      const std::int64_t at = unit % inner;
      const std::int64_t dy = outer * p.indices.count * inner + at;
      Sum<T, width> sum;
      constexpr int at_once = 4;
      const std::int32_t end = p.offsets[group + 1];
      for (std::int32_t first = p.offsets[group]; first < end; first += at_once) {
        T rows[at_once][width];
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          if (first + i < end) read(rows[i], p.dy, (dy + p.order[first + i] * inner) * width, 1);
        }
        TANDEM_UNROLL
        for (int i = 0; i < at_once; ++i) {
          if (first + i < end) sum.add(rows[i]);
        }
      }
      sum.store_result(p.dx, (outer * p.indices.rows + p.unique[group]) * inner + at);
    });
  }
};

// Calls f with the element type and with the width as a type.
template <class F>
void with_kernel(DType dtype, bool wide, const F& f) {
  with_stored(dtype, [&](auto tag) {
    using T = decltype(tag);
    using Number = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    if constexpr (std::is_same_v<ComputedType<Number>, float>) {
      if (wide) return f(Number{}, Count<unit_width<Number>>{});
    }
    f(Number{}, Count<1>{});
  });
}

}  // namespace

void launch_gather_grad_direct(GpuContext& gpu, const GatherGradArguments& arguments, DType dtype,
                               bool wide, void* queue) {
  const LaunchShape shape =
      spread(arguments.outer * arguments.indices.rows * arguments.inner.extent,
             gpu.properties.multiprocessors);
  with_kernel(dtype, wide, [&](auto tag, auto width) {
    const DirectKernel<decltype(tag), decltype(width)::value> body{arguments};
    gpu.launch(launch_of("gather_grad", shape, body), queue);
  });
}

void launch_gather_grad_grouped(GpuContext& gpu, const GatherGradArguments& arguments, DType dtype,
                                bool wide, void* queue) {
  const LaunchShape shape = spread(arguments.outer * arguments.capacity * arguments.inner.extent,
                                   gpu.properties.multiprocessors);
  with_kernel(dtype, wide, [&](auto tag, auto width) {
    const GroupedKernel<decltype(tag), decltype(width)::value> body{arguments};
    gpu.launch(launch_of("gather_grad", shape, body), queue);
  });
}

}  // namespace tandem::cuda
