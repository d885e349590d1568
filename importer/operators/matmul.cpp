// MatMul, Det, and Gemm as products, transposes and sums.
#include "importer/operators/matmul.h"

namespace tandem::importer::operators {

void matmul(NodeContext& node) { node.out(0, node.make("MatMul", {node.in(0), node.in(1)})); }

void det(NodeContext& node) {
  const Term y = node.make("Det", {node.widen(node.in(0))});
  node.out(0, node.cast(y, node.dtype(0)));
}

Term general_product(NodeContext& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    node.fail("operands", "matrices",
              to_string(node.shape(0)) + " and " + to_string(node.shape(1)));
  }
  const Ints swap{1, 0};
  const Term a = node.flag("transA", false) ? node.transpose(node.in(0), swap) : node.in(0);
  const Term b = node.flag("transB", false) ? node.transpose(node.in(1), swap) : node.in(1);
  const double alpha = node.number("alpha", 1.0), beta = node.number("beta", 1.0);
  Term result = node.make("MatMul", {a, b});
  if (alpha != 1.0) result = node.make("Mul", {result, node.scalar(alpha, result.type.dtype)});
  if (node.has(2) && beta != 0.0) {
    Term c = node.in(2);
    const auto joint = broadcast_shape(c.type.shape, result.type.shape);
    if (!joint || *joint != result.type.shape) {
      node.fail("operand C", "one that broadcasts to " + to_string(result.type.shape),
                to_string(c.type.shape));
    }
    if (beta != 1.0) c = node.make("Mul", {c, node.scalar(beta, c.type.dtype)});
    result = node.make("Add", {result, c});
  }
  return result;
}

void gemm(NodeContext& node) { node.out(0, general_product(node)); }

}  // namespace tandem::importer::operators
