// Identity: a copy, which passes remove.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void identity(NodeContext& node) {
  const Term& x = node.operand(0);
  node.out(0, x.sequence || x.none ? x : node.make("Identity", {x}));
}

}  // namespace tandem::importer::operators
