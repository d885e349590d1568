// Adds up the parts of a fused reduction that several blocks have shared.
#pragma once

#include "kernels/cuda/context.h"
#include "kernels/shared/block/walk.h"

namespace tandem::cuda {

/// result[k] = scale * the sum of partial[:, k], or its maximum, over `parts` parts; of none 0 and
/// -infinity.
struct FinishArguments {
  const double* partial = nullptr;
  void* result = nullptr;
  std::int64_t parts = 0, elements = 0;
  double scale = 1;
  bool maximum = false;
  Walk<1> walk;  // over the result
};

/// `emulated`: where kernels are emulated, the result is there already.
void launch_finish(GpuContext& gpu, const FinishArguments& arguments, DType dtype,
                   const LaunchShape& shape, void* queue, bool emulated = false);

}  // namespace tandem::cuda
