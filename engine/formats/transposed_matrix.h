// A matrix whose rows become columns.
#pragma once

#include "engine/graph/host_tensor.h"

namespace tandem {

HostTensor transposed_matrix(const HostTensor& from);

}  // namespace tandem
