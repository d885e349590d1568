// One source for a kernel on the GPU and on the host. A kernel is a struct of its arguments whose
// call operator is written for a whole block, in phases:
//
//   struct RowSums {
//     const float* x; float* y; int columns;
//     template <class Block>
//     TANDEM_HOST_DEVICE void operator()(Block& block) const {
//       typename Block::template Private<float> sum;
//       block.each([&](int thread) {                     // all threads; ends without a barrier
//         sum(thread) = 0;
//         for (int c = thread; c < columns; c += block.threads()) sum(thread) += x[...];
//       });
//       const float total = block.sum(sum);              // a barrier; the same in all threads
//       block.one([&] { y[block.index()] = total; });
//     }
//   };
//
// On the GPU `each` is the body of a thread and a Private is a register. On the host `each` is a
// loop over the threads and a Private an array, so that phases of threads follow each other as
// barriers order them. What one thread writes to shared or global memory and another reads needs
// `block.sync()` between the phases. Sums go through a tree of 32-lane groups, in the same order on
// both.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cstddef>
#include <cstdint>
#include <cstring>
#endif
#if !defined(__CUDA_ARCH__)
#include <vector>
#endif
#if !defined(__CUDACC_RTC__)
#include "kernels/shared/block/emulated_block.h"
#endif

#include "engine/graph/host_device.h"
#include "kernels/shared/block/launch.h"

namespace tandem::cuda {

inline constexpr int most_threads = 1024;

struct SumOf {
  template <class T>
  TANDEM_HOST_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
/// NaN wins.
struct MaximumOf {
  template <class T>
  TANDEM_HOST_DEVICE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinimumOf {
  template <class T>
  TANDEM_HOST_DEVICE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// A block on the host. Also what nvcc's host pass and g++ see.
class HostBlock {
 public:
  template <class T>
  class Private {
   public:
    TANDEM_HOST_DEVICE T& operator()(int thread) { return values_[thread]; }
    TANDEM_HOST_DEVICE const T& operator()(int thread) const { return values_[thread]; }

   private:
    T values_[most_threads] = {};
  };

  TANDEM_HOST_DEVICE HostBlock(const LaunchShape& shape, unsigned index, unsigned index_y,
                               void* shared)
      : shape_(shape), index_(index), index_y_(index_y), shared_(shared) {}

  TANDEM_HOST_DEVICE unsigned index() const { return index_; }
  TANDEM_HOST_DEVICE unsigned index_y() const { return index_y_; }
  TANDEM_HOST_DEVICE unsigned blocks() const { return shape_.blocks; }
  TANDEM_HOST_DEVICE int threads() const { return static_cast<int>(shape_.threads); }
  template <class T>
  TANDEM_HOST_DEVICE T* shared(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(shared_) + offset);
  }
  template <class F>
  TANDEM_HOST_DEVICE void each(F f) const {
    for (int thread = 0; thread < threads(); ++thread) f(thread);
  }
  template <class F>
  TANDEM_HOST_DEVICE void one(F f) const {
    f();
  }
  TANDEM_HOST_DEVICE void sync() const {}

  template <class T, class Combine>
  TANDEM_HOST_DEVICE T reduce(const Private<T>& values, Combine combine) const {
    T groups[most_threads / 32];
    const int count = (threads() + 31) / 32;
    for (int group = 0; group < count; ++group) {
      T lanes[32];
      const int size = threads() - group * 32 < 32 ? threads() - group * 32 : 32;
      for (int lane = 0; lane < size; ++lane) lanes[lane] = values(group * 32 + lane);
      groups[group] = tree(lanes, size, combine);
    }
    return tree(groups, count, combine);
  }
  template <class T>
  TANDEM_HOST_DEVICE T sum(const Private<T>& values) const {
    return reduce(values, SumOf{});
  }
  template <class T>
  TANDEM_HOST_DEVICE T maximum(const Private<T>& values) const {
    return reduce(values, MaximumOf{});
  }
  /// Combines only each `size` neighbouring threads; all of them get the result. `size` is a power
  /// of two up to 32 that divides the number of threads, which is a multiple of 32. No barrier.
  template <class T, class Combine>
  TANDEM_HOST_DEVICE Private<T> reduce_groups(const Private<T>& values, int size,
                                              Combine combine) const {
    Private<T> result;
    for (int first = 0; first < threads(); first += size) {
      T lanes[32];
      for (int lane = 0; lane < size; ++lane) lanes[lane] = values(first + lane);
      const T all = tree(lanes, size, combine);
      for (int lane = 0; lane < size; ++lane) result(first + lane) = all;
    }
    return result;
  }

 private:
  // Lane i takes lane i + width, width = 16, 8, ... 1; lanes that are not there are left out.
  template <class T, class Combine>
  TANDEM_HOST_DEVICE static T tree(T* lanes, int size, Combine combine) {
    for (int width = 16; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane) {
        if (lane + width < size) lanes[lane] = combine(lanes[lane], lanes[lane + width]);
      }
      size = size < width ? size : width;
    }
    return lanes[0];
  }

  const LaunchShape& shape_;
  unsigned index_, index_y_;
  void* shared_;
};

#if defined(__CUDACC__)
/// A block on the GPU, as one of its threads sees it. Threads are a multiple of 32 or fewer.
class GpuBlock {
 public:
  template <class T>
  class Private {
   public:
    __device__ T& operator()(int) { return value_; }
    __device__ const T& operator()(int) const { return value_; }

   private:
    T value_ = {};
  };

  __device__ explicit GpuBlock(void* shared) : shared_(shared) {}

  __device__ unsigned index() const { return blockIdx.x; }
  __device__ unsigned index_y() const { return blockIdx.y; }
  __device__ unsigned blocks() const { return gridDim.x; }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  template <class T>
  __device__ T* shared(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(static_cast<char*>(shared_) + offset);
  }
  template <class F>
  __device__ void each(F f) const {
    f(static_cast<int>(threadIdx.x));
  }
  template <class F>
  __device__ void one(F f) const {
    if (threadIdx.x == 0) f();
  }
  __device__ void sync() const { __syncthreads(); }

  template <class T, class Combine>
  __device__ T reduce(const Private<T>& values, Combine combine) const {
    __shared__ alignas(16) unsigned char memory[sizeof(T) * (most_threads / 32)];
    T* const groups = reinterpret_cast<T*>(memory);
    const int count = (threads() + 31) / 32, group = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int size = threads() - group * 32 < 32 ? threads() - group * 32 : 32;
    const T own = tree(values(0), lane, size, size, combine);
    __syncthreads();  // readers of an earlier reduction are done
    if (lane == 0) groups[group] = own;
    __syncthreads();
    if (group == 0) {
      const T all = tree(lane < count ? groups[lane] : own, lane, count, size, combine);
      if (lane == 0) groups[0] = all;
    }
    __syncthreads();
    return groups[0];
  }
  template <class T>
  __device__ T sum(const Private<T>& values) const {
    return reduce(values, SumOf{});
  }
  template <class T>
  __device__ T maximum(const Private<T>& values) const {
    return reduce(values, MaximumOf{});
  }
  template <class T, class Combine>
  __device__ Private<T> reduce_groups(const Private<T>& values, int size, Combine combine) const {
    T value = values(0);
    for (int width = size / 2; width > 0; width /= 2) {
      value = combine(value, __shfl_down_sync(0xffffffffu, value, width, size));
    }
    Private<T> result;
    result(0) = __shfl_sync(0xffffffffu, value, 0, size);
    return result;
  }

 private:
  /// Combines the first `size` values of a warp whose first `lanes` threads take part.
  template <class T, class Combine>
  __device__ static T tree(T value, int lane, int size, int lanes, Combine combine) {
    const unsigned mask = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    for (int width = 16; width > 0; width /= 2) {
      const T other = __shfl_down_sync(mask, value, width);
      if (lane < width && lane + width < size) value = combine(value, other);
      size = size < width ? size : width;
    }
    return value;
  }

  void* shared_;
};

template <class Body>
__global__ void gpu_entry(const __grid_constant__ Body body) {
  extern __shared__ __align__(16) unsigned char shared[];
  GpuBlock block(shared);
  body(block);
}
/// For a body with `static constexpr int block_threads`, the most threads that it is launched with:
/// registers are allocated for that many.
template <class Body>
__global__ void __launch_bounds__(Body::block_threads, 1)
    bounded_entry(const __grid_constant__ Body body) {
  extern __shared__ __align__(16) unsigned char shared[];
  GpuBlock block(shared);
  body(block);
}
#endif

#if !defined(__CUDACC_RTC__)
template <class Body>
void emulate_on_host(const LaunchShape& shape, const void* body) {
#if !defined(__CUDA_ARCH__)
  std::vector<std::max_align_t> shared(shape.shared_bytes / sizeof(std::max_align_t) + 1);
  for (unsigned y = 0; y < shape.blocks_y; ++y) {
    for (unsigned x = 0; x < shape.blocks; ++x) {
      // A GPU's shared memory holds anything at a block's start.
      std::memset(shared.data(), 0xff, shape.shared_bytes);
      const detail::EmulatedBlock emulated(shared.data(), shape.shared_bytes);
      HostBlock block(shape, x, y, shared.data());
      (*static_cast<const Body*>(body))(block);
    }
  }
#endif
}
#endif

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
/// The call for `Runtime::launch`, in files for nvcc. `body` lives until that call has returned.
template <class Body>
Launch launch_of(const char* name, const LaunchShape& shape, const Body& body) {
  static_assert(sizeof(Body) <= 4096, "arguments of a kernel are at most 4 KiB");
  const void* entry = nullptr;
  if constexpr (requires { Body::block_threads; }) {
    entry = reinterpret_cast<const void*>(&bounded_entry<Body>);
  } else {
    entry = reinterpret_cast<const void*>(&gpu_entry<Body>);
  }
  return {name, entry, &emulate_on_host<Body>, &body, sizeof(Body), shape};
}
#endif

}  // namespace tandem::cuda
