// Gather: slices along an axis.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void gather(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  node.out(0, node.make("Gather", {node.in(0), node.in(1)}, {{"axis", axis}}));
}

}  // namespace tandem::importer::operators
