// Updates of single elements; the templates, which take long to compile, are in other files.
#pragma once

#include <memory>

#include "kernels/cuda/context.h"
#include "kernels/cuda/updates/rules.h"

namespace tandem::cuda {

/// Null where the node's rule is of another part.
template <int part>
std::unique_ptr<PreparedKernel> make_element_update(const Gpu& gpu, const KernelRequest& r);

}  // namespace tandem::cuda
