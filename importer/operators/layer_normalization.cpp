// LayerNormalization.
#include "importer/node_context.h"

namespace tandem::importer::operators {

// Scale and bias may be broadcast to the normalised axes.
void layer_normalization(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  const Shape normalised(x.begin() + axis, x.end());
  if (node.dtype(1) != node.dtype(0)) node.unsupported("scale of another element type");
  std::vector<Term> inputs{node.in(0), node.expand(node.in(1), normalised)};
  if (node.has(2)) inputs.push_back(node.expand(node.in(2), normalised));
  const std::vector<Term> results = node.make_all(
      "LayerNormalization", inputs, {{"axis", axis}, {"epsilon", node.number("epsilon", 1e-5)}});
  for (std::size_t i = 0; i < 3; ++i) node.out(i, results[i]);
}

}  // namespace tandem::importer::operators
