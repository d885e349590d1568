// The parts of the list of basic reference kernels.
#pragma once

#include "engine/runtime/kernel.h"

namespace tandem::reference {

void add_elementwise(KernelList& list);
void add_moves(KernelList& list);
void add_padding(KernelList& list);
void add_gathers(KernelList& list);
void add_indices(KernelList& list);
void add_resize(KernelList& list);
void add_reductions(KernelList& list);
void add_products(KernelList& list);
void add_fused(KernelList& list);
/// Integers, bool and the 16-bit floats, where element types matter.
void add_other_types(KernelList& list);

}  // namespace tandem::reference
