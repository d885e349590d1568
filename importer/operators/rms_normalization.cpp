// RMSNormalization: x over the root of its mean square. ONNX's definition
// computes in float32, which a double does not need.
#include "importer/operators/rms.h"

namespace tandem::importer::operators {

Term reciprocal_rms(NodeContext& node, const Term& x, std::int64_t axis, double epsilon) {
  Ints axes;
  for (std::int64_t i = axis; i < static_cast<std::int64_t>(x.type.rank()); ++i) axes.push_back(i);
  const Term square = node.make("Mul", {x, x});
  const Term mean =
      node.make("ReduceMean", {square}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const Term sum = node.make("Add", {mean, node.scalar(epsilon, x.type.dtype)});
  return node.make("Reciprocal", {node.make("Sqrt", {sum})});
}

void rms_normalization(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  const std::int64_t stash = node.integer("stash_type", 1);
  if (stash != 1) node.unsupported("a stash_type other than 1, float32");
  if (broadcast_shape(node.shape(1), node.shape(0)) != node.shape(0)) {
    node.fail("scale", "a shape that broadcasts to " + to_string(node.shape(0)),
              to_string(node.shape(1)));
  }
  const Term x = node.widen(node.in(0));
  const Term factor = reciprocal_rms(node, x, axis, node.number("epsilon", 1e-5));
  const Term normalised = node.cast(node.make("Mul", {x, factor}), node.dtype(1));
  node.out(0, node.make("Mul", {normalised, node.in(1)}));
  node.out(1, factor);  // SimplifiedLayerNormalization, the same operator, has this output
}

}  // namespace tandem::importer::operators
