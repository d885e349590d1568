#include "kernels/cpu/cpu_kernels.h"

#include <iterator>

#include "kernels/reference/reference_kernels.h"

namespace tandem {

KernelList cpu_kernels() {
  KernelList list;
  add_product_kernels(list);
  add_row_kernels(list);
  add_rows_ahead_kernels(list);
  add_bag_kernels(list);
  add_row_update_kernels(list);
  add_mark_kernels(list);
  add_cached_row_kernels(list);
  add_elementwise_kernels(list);
  add_network_kernels(list);
  add_update_kernels(list);
  add_tensor_update_kernels(list);
  add_factored_update_kernels(list);
  KernelList reference = reference_kernels();
  list.insert(list.end(), std::make_move_iterator(reference.begin()),
              std::make_move_iterator(reference.end()));
  return list;
}

}  // namespace tandem
