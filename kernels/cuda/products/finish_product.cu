// Bias and activation in one pass over a product, in place, and the scales of an update.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/cuda/block/block.h"
#include "kernels/cuda/products/own_kernels.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda {
namespace {

TANDEM_HOST_DEVICE inline float widened(float x) { return x; }
TANDEM_HOST_DEVICE inline float widened(__half x) { return __half2float(x); }
TANDEM_HOST_DEVICE inline float widened(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T>
TANDEM_HOST_DEVICE inline T narrowed(float x) {
  if constexpr (sizeof(T) == sizeof(float))
    return x;
  else if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(x);
  else
    return __float2bfloat16_rn(x);
}

/// As many elements as one load brings.
template <class T, int width>
struct alignas(sizeof(T) * width) Pack {
  T values[width];
};

template <class T, int width>
struct FinishProduct {
  using Values = Pack<T, width>;
  Values* y;
  const Values* bias;           // null: none
  const Values* multiplier;     // of relu_grad
  std::int64_t packs, columns;  // of packs: in all, and in a row
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
        load(sums, i);
        if (bias != nullptr) add(sums, bias[column]);
        activate(sums, i);
        Values result;
        for (int k = 0; k < width; ++k) result.values[k] = narrowed<T>(sums[k]);
        y[i] = result;
        column += column_step;
        if (column >= columns) column -= columns;
      }
    });
  }

 private:
  TANDEM_HOST_DEVICE void load(float (&sums)[width], std::int64_t i) const {
    if (is_sum) {
      const Values own = y[i];
      for (int k = 0; k < width; ++k) sums[k] = widened(own.values[k]);
    } else {
      for (int k = 0; k < width; ++k) sums[k] = 0;
    }
  }

  TANDEM_HOST_DEVICE static void add(float (&sums)[width], const Values more) {
    for (int k = 0; k < width; ++k) sums[k] += widened(more.values[k]);
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
        const Values mask = multiplier[i];
        for (int k = 0; k < width; ++k) {
          sums[k] = scalar::relu_grad(sums[k], widened(mask.values[k]));
        }
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
void finish(CardContext& card, const FinishArguments& x, void* queue) {
  using Values = Pack<T, width>;
  const FinishProduct<T, width> body{static_cast<Values*>(x.y),
                                     static_cast<const Values*>(x.bias),
                                     static_cast<const Values*>(x.multiplier),
                                     x.rows * x.columns / width,
                                     x.columns / width,
                                     x.activation,
                                     x.is_sum};
  constexpr std::int64_t threads = 256;
  const std::int64_t wanted = (body.packs + threads - 1) / threads;
  const std::int64_t most = std::int64_t{8} * std::max(card.properties.multiprocessors, 1);
  card.launch(launch_of("finish_product",
                        {.blocks = static_cast<unsigned>(std::min(wanted, most)),
                         .threads = static_cast<unsigned>(threads)},
                        body),
              queue);
}

template <class T>
void finish(CardContext& card, const FinishArguments& x, void* queue) {
  constexpr int width = 16 / sizeof(T);
  const auto addresses = reinterpret_cast<std::uintptr_t>(x.y) |
                         reinterpret_cast<std::uintptr_t>(x.bias) |
                         reinterpret_cast<std::uintptr_t>(x.multiplier);
  if (x.columns % width == 0 && addresses % 16 == 0) {
    finish<T, width>(card, x, queue);
  } else {
    finish<T, 1>(card, x, queue);
  }
}

}  // namespace

void finish_product(CardContext& card, const FinishArguments& arguments, void* queue) noexcept {
  if (arguments.rows == 0 || arguments.columns == 0) return;
  switch (arguments.dtype) {
    case DType::float16:
      return finish<__half>(card, arguments, queue);
    case DType::bfloat16:
      return finish<__nv_bfloat16>(card, arguments, queue);
    default:
      return finish<float>(card, arguments, queue);
  }
}

void scale_update(CardContext& card, float alpha, const float* rate, float* scales,
                  void* queue) noexcept {
  card.launch(launch_of("scale_update", {.threads = 32}, ScaleUpdate{rate, scales, alpha}), queue);
}

}  // namespace tandem::cuda
