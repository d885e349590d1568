// SwiGLU: a sigmoid(alpha a) b.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void swiglu(NodeContext& node) {
  const Term &a = node.in(0), &b = node.in(1);
  if (a.type.shape != b.type.shape) {
    node.fail("operands", "equal shapes",
              to_string(a.type.shape) + " and " + to_string(b.type.shape));
  }
  const double alpha = node.number("alpha", 1.0);
  const Term gate = alpha == 1.0 ? a : node.make("Mul", {a, node.scalar(alpha, a.type.dtype)});
  const Term swish = node.make("Mul", {a, node.make("Sigmoid", {gate})});
  node.out(0, node.make("Mul", {swish, b}));
}

}  // namespace tandem::importer::operators
