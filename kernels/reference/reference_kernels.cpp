#include "kernels/reference/reference_kernels.h"

namespace tandem {

KernelList reference_kernels() {
  KernelList list;
  add_basic_reference_kernels(list);
  add_network_reference_kernels(list);
  return list;
}

}  // namespace tandem
