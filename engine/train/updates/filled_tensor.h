// Tensors of one number that take little memory, however large: start values of tables'
// accumulators.
#pragma once

#include "engine/graph/host_tensor.h"

namespace tandem {

/// float32, every element `value`. From 128 MiB on the same few pages are mapped again and again,
/// read-only: code that writes into it needs a clone. Throws Error{does_not_fit}.
HostTensor filled_tensor(Shape shape, float value);

}  // namespace tandem
