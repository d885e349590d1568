#include "kernels/cuda/pointwise/fused/fused_finish.h"

#include "kernels/shared/block/each_index.h"
#include "kernels/shared/block/numbers.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda {
namespace {

template <class T>
struct FinishKernel {
  FinishArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, p.elements, [&](std::int64_t k) {
      double total = p.maximum ? from_bits<double>(0xfff0000000000000u) : 0.0;
      for (std::int64_t part = 0; part < p.parts; ++part) {
        const double more = p.partial[part * p.elements + k];
        total = p.maximum ? scalar::maximum(total, more) : total + more;
      }
      std::int64_t at[1] = {};
      p.walk.locate(0, p.walk.axes, k, 1, at);
      static_cast<T*>(p.result)[at[0]] =
          stored<T>(static_cast<ComputedType<T>>(p.maximum ? total : total * p.scale));
    });
  }
};

}  // namespace

void launch_finish(GpuContext& gpu, const FinishArguments& arguments, DType dtype,
                   const LaunchShape& shape, void* queue, bool emulated) {
  const auto run = [&](auto tag) {
    const FinishKernel<decltype(tag)> body{arguments};
    Launch launch = launch_of("fused_finish", shape, body);
    if (emulated) launch.emulate = [](const LaunchShape&, const void*) {};
    gpu.launch(launch, queue);
  };
  switch (dtype) {
    case DType::float64:
      return run(double{});
    case DType::float16:
      return run(GpuFloat16{});
    case DType::bfloat16:
      return run(GpuBFloat16{});
    default:
      return run(float{});
  }
}

}  // namespace tandem::cuda
