// How long a sequence is that was filled up.
#pragma once

#include <cstdint>

#include "engine/graph/host_tensor.h"

namespace tandem {

/// Of values along axis 0 of `type`, which has one: the place behind the last of them that has an
/// element other than `pad`; 0 where there is none.
std::int64_t sequence_length(const TensorType& type, const void* values, std::int64_t pad);

}  // namespace tandem
