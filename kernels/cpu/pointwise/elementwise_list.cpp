// The CPU's kernels for fused bodies, single scalar operators, reductions and moves of data.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/pointwise/fused.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/reference/scalar_operators.h"

namespace tandem {

void add_elementwise_kernels(KernelList& list) {
  const auto add = [&](const std::string& op) { list.push_back(tile_kernel(kernel_name(op), op)); };
  add("Fused");
  for_each_scalar_operator([&](const Operator& op) {
    if (types_of(op.scalar) != ScalarTypes::integers) add(op.name);
  });
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "SumOfSquares"}) add(op);
  add_move_kernels(list);
  add_pad_kernels(list);
  add_gather_kernels(list);
  add_index_kernels(list);
  add_resize_kernels(list);
}

}  // namespace tandem
