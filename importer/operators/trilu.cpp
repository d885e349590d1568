// Trilu: the upper or lower triangle of matrices.
#include <algorithm>

#include "importer/node_context.h"

namespace tandem::importer::operators {

void trilu(NodeContext& node) {
  const std::int64_t k = node.has(1) ? node.static_integer(1, "k") : 0;
  const std::int64_t limit = std::int64_t{1} << 40;  // far beyond any extent
  node.out(0, node.make("Trilu", {node.in(0)},
                        {{"upper", std::int64_t{node.flag("upper", true)}},
                         {"k", std::clamp(k, -limit, limit)}}));
}

}  // namespace tandem::importer::operators
