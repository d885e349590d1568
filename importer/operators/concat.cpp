// Concat: the inputs one after the other along an axis.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void concat(NodeContext& node) {
  const std::int64_t axis =
      node.axis(node.version() < 4 ? node.integer("axis", 1) : node.integer("axis"), node.rank(0));
  std::vector<Term> parts = node.inputs();
  if (parts.size() == 1) {
    node.out(0, node.make("Identity", parts));
  } else {
    node.out(0, node.make("Concat", parts, {{"axis", axis}}));
  }
}

}  // namespace tandem::importer::operators
