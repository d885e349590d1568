// The kernel of element-wise operations, for nvcc: an Operation says how `count` elements are
// computed from offsets, and how many a unit has.
#pragma once

#include "kernels/cuda/pointwise/functions.h"
#include "kernels/shared/block/block.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda {

template <class Operation>
struct PointwiseKernel {
  PointwiseArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t threads = block.threads();
    block.each([&](int thread) {
      for_each_unit<Operation::width, 4>(p.space, block.index() * threads + thread,
                                         block.blocks() * threads,
                                         [&](auto count, const std::int64_t(&at)[4]) {
                                           Operation::template run<decltype(count)::value>(p, at);
                                         });
    });
  }
};

template <class Operation>
PointwiseVariant variant_of() {
  return {[](GpuContext& gpu, const PointwiseArguments& arguments, const LaunchShape& shape,
             void* queue) {
            const PointwiseKernel<Operation> body{arguments};
            gpu.launch(launch_of(Operation::name, shape, body), queue);
          },
          Operation::width};
}

/// Calls f with an element of that type, as it lies on the GPU.
#pragma nv_exec_check_disable
template <class F>
TANDEM_HOST_DEVICE auto with_stored(DType dtype, const F& f) {
  return with_type(
      wide_floats + TypeList<GpuFloat16, GpuBFloat16>{} + integer_types + TypeList<bool>{}, dtype,
      f);
}

/// Elements of a unit of 16 bytes.
template <class T>
inline constexpr int unit_width = 16 / static_cast<int>(sizeof(T));

}  // namespace tandem::cuda
