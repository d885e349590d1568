// How a fused kernel runs over its operands: source, arguments, launch.
#pragma once

#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/fused/fused_arguments.h"
#include "kernels/cuda/pointwise/fused/fused_finish.h"
#include "kernels/cuda/pointwise/fused/fused_source.h"

namespace tandem::cuda {

struct FusedPlan {
  std::string source;
  /// Arguments and blocks for units of `layout.width` elements where the operands lie so and are
  /// aligned, and for single elements. Both run the same kernel.
  struct Way {
    FusedArguments arguments;
    LaunchShape shape;
    bool possible = true;
  } wide, narrow;
  std::vector<std::size_t> alignment;  // bytes, per operand, of the wide way
  FinishArguments finish;              // where a reduction has several parts, or no elements
  std::int64_t elements = 0;           // elements of the index space

  /// For the partial sums where a reduction has several parts. Both ways cut a reduction alike.
  std::size_t workspace_bytes() const {
    return sizeof(double) * static_cast<std::size_t>(finish.parts * finish.elements);
  }
};

FusedPlan plan_fused(const KernelRequest& request, const FusedBody& body, int multiprocessors);

}  // namespace tandem::cuda
