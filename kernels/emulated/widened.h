// Kernels for 16-bit floats out of those for float32: operands are widened into the workspace and
// results rounded once, as hardware does that multiplies in 16 bits and adds in 32.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

/// `kernels` and, for requests with bfloat16 or float16 that none of the fast ones takes, the same
/// computing in float32.
KernelList with_widened(const KernelList& kernels);

}  // namespace tandem
