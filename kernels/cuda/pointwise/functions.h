// Kernels of single scalar operators, Where, Cast and Pow: their arguments, and which there are.
#pragma once

#include "kernels/cuda/context.h"
#include "kernels/cuda/pointwise/elements.h"
#include "kernels/reference/scalar_apply.h"

namespace tandem::cuda {

/// y = f(a, b, c). Places of strides: a, b, c, y; what a function does not have is ignored.
struct PointwiseArguments {
  const void* inputs[3] = {};
  void* output = nullptr;
  ElementSpace<4> space;
  ScalarFunction function = ScalarFunction::none;
  bool binary = false;  // `function` has two operands
  DType types[2] = {};  // types of a and b, where the kernel takes several
  scalar::Settings settings;
};

/// Runs a kernel on the stream; made for units of `pointwise_width`, or for single elements.
using PointwiseLauncher = void (*)(GpuContext& gpu, const PointwiseArguments& arguments,
                                   const LaunchShape& shape, void* queue);

/// A kernel of some types and functions; null where there is none.
struct PointwiseVariant {
  PointwiseLauncher launch = nullptr;
  int width = 1;  // elements of a unit
};

// Functions of operands of one type, by units: float32 and the 16-bit floats.
PointwiseVariant float32_function(ScalarFunction f);
PointwiseVariant float16_function(ScalarFunction f);
PointwiseVariant bfloat16_function(ScalarFunction f);
/// Functions of operands of any one type, by elements.
PointwiseVariant any_function(ScalarFunction f, DType dtype);
/// Pow of operands of two types, by elements.
PointwiseVariant any_power(DType base);
/// Casts: by units for the conversions that networks need, and by elements for all conversions.
PointwiseVariant wide_cast(DType from, DType to);
PointwiseVariant any_cast(DType to);
/// Where, for elements of `bytes` bytes.
PointwiseVariant choice(std::size_t bytes, bool wide);

}  // namespace tandem::cuda
