// Gemm for other operators.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// alpha A B + beta C of inputs 0 to 2.
Term general_product(NodeContext& node);

}  // namespace tandem::importer::operators
