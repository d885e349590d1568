// Tables of numbers that grow with the distance of two places, as ALiBi adds them to scores.
#pragma once

#include "engine/graph/host_tensor.h"

namespace tandem::importer {

/// The last axis is a place j, the one before it a place i (or 1): elements are a slope, the same
/// for all of them or one for each head, times j - i, i - j, |i - j| or j; or -inf where j comes
/// after i.
bool is_distance_table(const HostTensor& tensor);

}  // namespace tandem::importer
