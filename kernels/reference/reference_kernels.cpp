#include "kernels/reference/reference_kernels.h"

namespace tandem {
namespace reference {

#define TANDEM_REFERENCE(name) void add_##name(KernelList& list);
#include "kernels/reference/all_kernels.inl"

}  // namespace reference

KernelList reference_kernels() {
  KernelList list;
#define TANDEM_REFERENCE(name) reference::add_##name(list);
#include "kernels/reference/all_kernels.inl"
  return list;
}

}  // namespace tandem
