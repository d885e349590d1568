// The plain kernels: the specification of every operator, in float and double; any strides.
#pragma once

#include "engine/runtime/kernel.h"

namespace tandem {

KernelList reference_kernels();

// The parts of that list.
void add_basic_reference_kernels(KernelList& list);  // element-wise, moves, reductions, MatMul
void add_network_reference_kernels(
    KernelList& list);  // conv, pool, norm, losses, attention, updates

}  // namespace tandem
