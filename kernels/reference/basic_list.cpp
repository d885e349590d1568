// The reference kernels of the element-wise operators, moves, reductions and products.
#include "kernels/reference/basic_parts.h"
#include "kernels/reference/reference_kernels.h"

namespace tandem {

void add_basic_reference_kernels(KernelList& list) {
  reference::add_elementwise(list);
  reference::add_moves(list);
  reference::add_padding(list);
  reference::add_gathers(list);
  reference::add_indices(list);
  reference::add_resize(list);
  reference::add_reductions(list);
  reference::add_products(list);
  reference::add_other_types(list);
  reference::add_fused(list);
}

}  // namespace tandem
