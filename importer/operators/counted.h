// Constants that count along an axis.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// 0, 1, 2, ... along one of that many axes, whose others have extent 1.
Term counted(NodeContext& node, std::int64_t count, std::size_t axis, std::size_t rank);

}  // namespace tandem::importer::operators
