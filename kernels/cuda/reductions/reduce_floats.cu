// ReduceSum, ReduceMean and ReduceMax of floats, which sum up in float32.
#include "kernels/cuda/reductions/reduce.h"

namespace tandem::cuda::reductions {

std::unique_ptr<PreparedKernel> prepare_float_reduction(const KernelRequest& request,
                                                        const Gpu& gpu, ReductionKind kind) {
  const int wide =
      request.inputs[0].type.dtype == DType::float32 ? full_pack<float> : full_pack<Half>;
  const ReductionPlan plan = plan_reduction(
      request, {kind == ReductionKind::mean, wide, true, gpu->properties.multiprocessors});
  return with_float(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared(
        [=](const KernelArguments& a) {
          if (kind == ReductionKind::max) {
            reduce<T, Finding>(gpu, "reduce_max", plan, a);
          } else {
            reduce<T, Adding>(gpu, "reduce_sum", plan, a);
          }
        },
        plan.workspace_bytes(sizeof(float)));
  });
}

}  // namespace tandem::cuda::reductions
