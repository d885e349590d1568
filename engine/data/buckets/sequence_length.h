// The length of a sequence without the padding at its end.
#pragma once

#include <cstdint>

#include "engine/graph/host_tensor.h"

namespace tandem {

/// The index after the last value along axis 0 of `type`, which has one, that has an element other
/// than `pad`; 0 where there is none.
std::int64_t sequence_length(const TensorType& type, const void* values, std::int64_t pad);

}  // namespace tandem
