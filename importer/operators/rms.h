// The root mean square, which several operators divide by.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// 1 / sqrt(mean(x²) + epsilon) over the axes from `axis` on, which stay as 1.
Term reciprocal_rms(NodeContext& node, const Term& x, std::int64_t axis, double epsilon);

}  // namespace tandem::importer::operators
