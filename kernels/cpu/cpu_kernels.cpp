#include "kernels/cpu/cpu_kernels.h"

#include <iterator>

#include "kernels/cpu/pointwise/fused.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/rnn/rnn_kernels.h"
#include "kernels/reference/reference_kernels.h"
#include "kernels/reference/scalar_operators.h"

namespace tandem {

void add_elementwise_kernels(KernelList& list) {
  const auto add = [&](const std::string& op) { list.push_back(tile_kernel(kernel_name(op), op)); };
  add("Fused");
  for_each_scalar_operator([&](const Operator& op) {
    if (types_of(op.scalar) != ScalarTypes::integers) add(op.name);
  });
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "SumOfSquares"}) add(op);
  add_typed_kernels(list);
  add_move_kernels(list);
  add_pad_kernels(list);
  add_float8_kernels(list);
  add_gather_kernels(list);
  add_index_kernels(list);
  add_resize_kernels(list);
  add_grid_sample_kernels(list);
}

void add_network_kernels(KernelList& list) {
  add_softmax_kernels(list);
  add_loss_kernels(list);
  add_ctc_loss_kernels(list);
  add_layer_normalization_kernels(list);
  add_batch_normalization_kernels(list);
  add_dropout_kernels(list);
  add_attention_kernels(list);
  add_rnn_kernels(list);
}

KernelList cpu_kernels() {
  KernelList list;
  add_product_kernels(list);
  add_row_kernels(list);
  add_rows_ahead_kernels(list);
  add_bag_kernels(list);
  add_row_update_kernels(list);
  add_mark_kernels(list);
  add_cached_row_kernels(list);
  add_shard_row_kernels(list);
  add_elementwise_kernels(list);
  add_network_kernels(list);
  add_update_kernels(list);
  add_tensor_update_kernels(list);
  add_factored_update_kernels(list);
  add_byte_update_kernels(list);
  KernelList reference = reference_kernels();
  list.insert(list.end(), std::make_move_iterator(reference.begin()),
              std::make_move_iterator(reference.end()));
  return list;
}

}  // namespace tandem
