// Gelu in its spellings, and sums with a bias.
#include "importer/node_context.h"

namespace tandem::importer::operators::microsoft {
namespace {

Term with_bias(NodeContext& node) {
  return node.has(1) ? node.make("Add", {node.in(0), node.in(1)}) : node.in(0);
}

}  // namespace

void gelu(NodeContext& node) {
  node.out(0, node.make("Gelu", {with_bias(node)}, {{"approximate", std::string("none")}}));
}

void fast_gelu(NodeContext& node) {
  node.out(0, node.make("Gelu", {with_bias(node)}, {{"approximate", std::string("tanh")}}));
}

// x sigmoid(alpha x)
void quick_gelu(NodeContext& node) {
  const Term& x = node.in(0);
  const Term alpha = node.scalar(node.number("alpha", 1.702), x.type.dtype);
  const Term gate = node.make("Sigmoid", {node.make("Mul", {x, alpha})});
  node.out(0, node.make("Mul", {x, gate}));
}

void bias_add(NodeContext& node) { node.out(0, node.make("Add", {with_bias(node), node.in(2)})); }

}  // namespace tandem::importer::operators::microsoft
