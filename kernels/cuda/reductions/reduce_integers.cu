// ReduceSum, ReduceMean and ReduceMax of integers, and ReduceMax of bool.
#include "kernels/cuda/reductions/reduce.h"

namespace tandem::cuda::reductions {
namespace {

// bool takes part as a number of one byte.
template <class F>
std::unique_ptr<PreparedKernel> with_integer(DType dtype, F&& f) {
  switch (dtype) {
    case DType::int8:
      return f(std::int8_t{});
    case DType::int16:
      return f(std::int16_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::uint16:
      return f(std::uint16_t{});
    case DType::uint32:
      return f(std::uint32_t{});
    case DType::uint64:
      return f(std::uint64_t{});
    default:
      return f(std::uint8_t{});
  }
}

}  // namespace

std::unique_ptr<PreparedKernel> prepare_integer_reduction(const KernelRequest& request,
                                                          const Card& card, ReductionKind kind) {
  const ReductionPlan plan = plan_reduction(
      request, {kind == ReductionKind::mean, 1, false, card->properties.multiprocessors});
  return with_integer(request.inputs[0].type.dtype, [&](auto tag) {
    using T = decltype(tag);
    return prepared([=](const KernelArguments& a) {
      if (kind == ReductionKind::max) {
        reduce<T, Finding>(card, "reduce_max", plan, a);
      } else {
        reduce<T, Adding>(card, "reduce_sum", plan, a);
      }
    });
  });
}

}  // namespace tandem::cuda::reductions
