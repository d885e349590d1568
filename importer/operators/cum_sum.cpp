// CumSum: the axis is an input that is known before the run.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void cum_sum(NodeContext& node) {
  const std::int64_t axis = node.axis(node.static_integer(1, "axis"), node.rank(0));
  node.out(0, node.make("CumSum", {node.in(0)},
                        {{"axis", axis},
                         {"exclusive", std::int64_t{node.flag("exclusive", false)}},
                         {"reverse", std::int64_t{node.flag("reverse", false)}}}));
}

}  // namespace tandem::importer::operators
