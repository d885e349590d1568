// ReduceSum, ReduceMean and ReduceMax of integers, and ReduceMax of bool.
#include "kernels/cuda/reductions/reduce.h"

namespace tandem::cuda::reductions {
namespace {

// bool, the type of no entry, takes part as the last one: a number of one byte.
constexpr auto types = integer_types + TypeList<std::uint8_t>{};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_integer_reduction(const KernelRequest& request,
                                                          const Gpu& gpu, ReductionKind kind) {
  const ReductionPlan plan = plan_reduction(
      request, {kind == ReductionKind::mean, 1, false, gpu->properties.multiprocessors});
  return with_type(types, request.inputs[0].type.dtype,
                   [&](auto tag) -> std::unique_ptr<PreparedKernel> {
                     using T = decltype(tag);
                     return prepared([=](const KernelArguments& a) {
                       if (kind == ReductionKind::max) {
                         reduce<T, Finding>(gpu, "reduce_max", plan, a);
                       } else {
                         reduce<T, Adding>(gpu, "reduce_sum", plan, a);
                       }
                     });
                   });
}

}  // namespace tandem::cuda::reductions
