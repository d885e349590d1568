// Softmax and LogSoftmax of every version.
#include "importer/node_context.h"

namespace tandem::importer::operators {

// Before version 13 the axes from `axis` on are one axis together.
void softmax(NodeContext& node) {
  const std::string& op = node.node().op_type();
  const Shape& x = node.shape(0);
  if (node.version() >= 13) {
    const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
    node.out(0, node.make(op, {node.in(0)}, {{"axis", axis}}));
    return;
  }
  const std::int64_t axis = node.axis(node.integer("axis", 1), node.rank(0));
  if (axis + 1 == node.rank(0)) {  // the same as today's meaning
    node.out(0, node.make(op, {node.in(0)}, {{"axis", axis}}));
    return;
  }
  const Shape matrix{element_count(Shape(x.begin(), x.begin() + axis)),
                     element_count(Shape(x.begin() + axis, x.end()))};
  const Term flat = node.reshape(node.in(0), matrix);
  const Term y = node.make(op, {flat}, {{"axis", std::int64_t{1}}});
  node.out(0, node.reshape(y, x));
}

}  // namespace tandem::importer::operators
