// Kernels for what cuBLASLt does not do: activations that it has no epilogue for, the step size of
// an update, products of other element types, and those that it has no algorithm for.
#pragma once

#include <cstdint>

#include "engine/operators/activation.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/products/product.h"

namespace tandem::cuda {

/// y = activation(y + bias), or y (multiplier > 0); where nothing was summed, of zeros. Row-major.
struct ProductFinish {
  DType dtype = DType::float32;  // type of all operands: float32, float16 or bfloat16
  std::int64_t rows = 0, columns = 0;
  Activation activation = Activation::none;
  bool is_sum = true;  // y holds the product
  void* y = nullptr;
  const void* bias = nullptr;        // along the columns; null: none
  const void* multiplier = nullptr;  // for relu_grad
};
void finish_product(GpuContext& gpu, const ProductFinish& arguments, void* queue) noexcept;

/// scales = {alpha *rate, 1}.
void scale_update(GpuContext& gpu, float alpha, const float* rate, float* scales,
                  void* queue) noexcept;

/// Batch axes that `plain_product` takes.
inline constexpr std::size_t most_plain_axes = 6;

struct PlainArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  // Only for float32, float16 and bfloat16:
  const void* c = nullptr;        // laid out as y, may be y; null: nothing is added
  float alpha = 1;                // where `scales` is null
  const float* scales = nullptr;  // on the GPU: alpha is the first
};
/// y = alpha a b [+ c] by plain sums: of integers, which wrap around, of float64, of the 16-bit
/// floats in float32. Any strides, addresses and extents; slow.
void plain_product(GpuContext& gpu, const Product& product, DType dtype,
                   const PlainArguments& arguments, void* queue) noexcept;

}  // namespace tandem::cuda
