// Reductions in float and double.
#include "kernels/reference/reductions.h"

namespace tandem::reference {
namespace {

std::unique_ptr<PreparedKernel> sum(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_sum<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> prod(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_prod<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> max(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_max<decltype(tag)>(request); });
}

std::unique_ptr<PreparedKernel> sum_of_squares(const KernelRequest& request) {
  return with_main_type(request.inputs[0].type.dtype,
                        [&](auto tag) { return prepare_sum_of_squares<decltype(tag)>(request); });
}

}  // namespace

void add_reductions(KernelList& list) {
  list.push_back(reference_kernel("reduce_sum", "ReduceSum", refuse_other_types<0>, sum));
  list.push_back(reference_kernel("reduce_mean", "ReduceMean", refuse_other_types<0>, sum));
  list.push_back(reference_kernel("reduce_prod", "ReduceProd", refuse_other_types<0>, prod));
  list.push_back(reference_kernel("reduce_max", "ReduceMax", refuse_other_types<0>, max));
  list.push_back(
      reference_kernel("sum_of_squares", "SumOfSquares", refuse_other_types<0>, sum_of_squares));
}

}  // namespace tandem::reference
