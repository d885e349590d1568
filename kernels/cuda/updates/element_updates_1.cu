// Updates of single elements: a part of the rules.
#include "kernels/cuda/updates/element_updates.inl"

namespace tandem::cuda {

template std::unique_ptr<PreparedKernel> make_element_update<1>(const Gpu&, const KernelRequest&);

}  // namespace tandem::cuda
