// What cuBLASLt leaves to kernels of ours: activations that it has no epilogue for, the step size
// of an update, and products of other element types.
#pragma once

#include <cstdint>

#include "engine/operators/activation.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/products/product.h"

namespace tandem::cuda {

/// y = activation(y + bias), or y (multiplier > 0); where nothing was summed, of zeros. Row-major.
struct FinishArguments {
  DType dtype = DType::float32;  // of all operands: float32, float16 or bfloat16
  std::int64_t rows = 0, columns = 0;
  Activation activation = Activation::none;
  bool is_sum = true;  // y holds the product
  void* y = nullptr;
  const void* bias = nullptr;        // along the columns; null: none
  const void* multiplier = nullptr;  // of relu_grad
};
void finish_product(CardContext& card, const FinishArguments& arguments, void* queue) noexcept;

/// scales = {alpha *rate, 1}.
void scale_update(CardContext& card, float alpha, const float* rate, float* scales,
                  void* queue) noexcept;

/// Batch axes that `plain_product` takes.
inline constexpr std::size_t most_plain_axes = 6;

/// y = a b by plain sums of integers, which wrap around, or float64; any strides.
void plain_product(CardContext& card, const Product& product, DType dtype, const void* a,
                   const void* b, void* y, void* queue) noexcept;

}  // namespace tandem::cuda
