// Identity: a copy, which passes remove.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void identity(NodeContext& node) { node.out(0, node.make("Identity", {node.in(0)})); }

}  // namespace tandem::importer::operators
