// Bias and activation in one pass over a product, in place, and the scales of an update.
#include "kernels/cuda/launching.h"
#include "kernels/cuda/products/own_kernels.h"
#include "kernels/shared/block/packs.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda {
namespace {

template <class T, int width>
struct FinishProduct {
  T* y;
  const T* bias;                // null: none
  const T* multiplier;          // for relu_grad
  std::int64_t packs, columns;  // packs in all, and packs in a row
  Activation activation;
  bool is_sum;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    block.each([&](int thread) {
      const std::int64_t step = static_cast<std::int64_t>(block.blocks()) * block.threads();
      std::int64_t i = static_cast<std::int64_t>(block.index()) * block.threads() + thread;
      std::int64_t column = i % columns;
      const std::int64_t column_step = step % columns;
      for (; i < packs; i += step) {
        float sums[width];
        start(sums, i);
        if (bias != nullptr) add(sums, bias + column * width);
        activate(sums, i);
        store_pack<width>(y + i * width, sums);
        column += column_step;
        if (column >= columns) column -= columns;
      }
    });
  }

 private:
  TANDEM_HOST_DEVICE void start(float (&sums)[width], std::int64_t i) const {
    if (is_sum) {
      load_pack<width>(y + i * width, sums);
    } else {
      for (int k = 0; k < width; ++k) sums[k] = 0;
    }
  }

  TANDEM_HOST_DEVICE static void add(float (&sums)[width], const T* from) {
    float more[width];
    load_pack<width>(from, more);
    for (int k = 0; k < width; ++k) sums[k] += more[k];
  }

  TANDEM_HOST_DEVICE void activate(float (&sums)[width], std::int64_t i) const {
    switch (activation) {
      case Activation::none:
        break;
      case Activation::relu:
        for (int k = 0; k < width; ++k) sums[k] = scalar::relu(sums[k]);
        break;
      case Activation::gelu:
        for (int k = 0; k < width; ++k) sums[k] = scalar::gelu(sums[k]);
        break;
      case Activation::gelu_tanh:
        for (int k = 0; k < width; ++k) sums[k] = scalar::gelu_tanh(sums[k]);
        break;
      case Activation::relu_grad: {
        float mask[width];
        load_pack<width>(multiplier + i * width, mask);
        for (int k = 0; k < width; ++k) sums[k] = scalar::relu_grad(sums[k], mask[k]);
        break;
      }
    }
  }
};

struct ScaleUpdate {
  const float* rate;
  float* scales;
  float alpha;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    block.one([&] {
      scales[0] = alpha * *rate;
      scales[1] = 1;
    });
  }
};

template <class T, int width>
void finish(GpuContext& gpu, const ProductFinish& x, void* queue) {
  const FinishProduct<T, width> body{static_cast<T*>(x.y),
                                     static_cast<const T*>(x.bias),
                                     static_cast<const T*>(x.multiplier),
                                     x.rows * x.columns / width,
                                     x.columns / width,
                                     x.activation,
                                     x.is_sum};
  const LaunchShape shape = spread(body.packs, gpu.properties.multiprocessors);
  gpu.launch(launch_of("finish_product", shape, body), queue);
}

template <class T>
void finish(GpuContext& gpu, const ProductFinish& x, void* queue) {
  constexpr int width = full_pack<T>;
  const auto addresses = reinterpret_cast<std::uintptr_t>(x.y) |
                         reinterpret_cast<std::uintptr_t>(x.bias) |
                         reinterpret_cast<std::uintptr_t>(x.multiplier);
  if (x.columns % width == 0 && addresses % 16 == 0) {
    finish<T, width>(gpu, x, queue);
  } else {
    finish<T, 1>(gpu, x, queue);
  }
}

}  // namespace

void finish_product(GpuContext& gpu, const ProductFinish& arguments, void* queue) noexcept {
  if (arguments.rows == 0 || arguments.columns == 0) return;
  with_float(arguments.dtype, [&](auto tag) { finish<decltype(tag)>(gpu, arguments, queue); });
}

void scale_update(GpuContext& gpu, float alpha, const float* rate, float* scales,
                  void* queue) noexcept {
  gpu.launch(launch_of("scale_update", {.threads = 32}, ScaleUpdate{rate, scales, alpha}), queue);
}

}  // namespace tandem::cuda
