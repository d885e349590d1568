// BitCast.
#include "importer/operators/element_type.h"

namespace tandem::importer::operators {

void bit_cast(NodeContext& node) {
  const DType to = element_type(node, node.integer("to"));
  node.out(0, node.make("BitCast", {node.in(0)}, {{"to", std::string(name_of(to))}}));
}

}  // namespace tandem::importer::operators
