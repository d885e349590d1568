// The plain kernels: the specification of every operator, in float and double; any strides.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

/// All kernels of the list kernels/reference/all_kernels.inl.
KernelList reference_kernels();

}  // namespace tandem
