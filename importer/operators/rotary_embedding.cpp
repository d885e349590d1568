// RotaryEmbedding, without the transposes that ONNX's definition has around it.
#include "importer/operators/heads.h"
#include "importer/operators/rotary.h"

namespace tandem::importer::operators {

Term rotate(NodeContext& node, const Term& x, const Term& cos, const Term& sin, bool interleaved) {
  const Shape& shape = x.type.shape;
  const std::int64_t size = shape.back(), half = cos.type.shape.back();
  if (half < 1 || 2 * half > size || sin.type.shape != cos.type.shape) {
    node.fail("cosines and sines",
              "equal shapes, the last extent at most half of a head's size " + std::to_string(size),
              to_string(cos.type.shape) + " and " + to_string(sin.type.shape));
  }
  const std::int64_t axis = static_cast<std::int64_t>(shape.size()) - 1;
  const auto part = [&](std::int64_t start, std::int64_t extent, std::int64_t step) {
    Ints starts(shape.size(), 0), steps(shape.size(), 1), sizes(shape.begin(), shape.end());
    starts.back() = start;
    sizes.back() = extent;
    steps.back() = step;
    return node.make("Slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
  };
  const Term a = interleaved ? part(0, half, 2) : part(0, half, 1);
  const Term b = interleaved ? part(1, half, 2) : part(half, half, 1);
  const auto product = [&](const Term& l, const Term& r) { return node.make("Mul", {l, r}); };
  const Term real = node.make("Sub", {product(a, cos), product(b, sin)});
  const Term imaginary = node.make("Add", {product(a, sin), product(b, cos)});
  std::vector<Term> parts{real, imaginary};
  if (interleaved) {
    Shape pair = real.type.shape;
    pair.push_back(1);
    const Term both = node.make("Concat", {node.reshape(real, pair), node.reshape(imaginary, pair)},
                                {{"axis", axis + 1}});
    pair.pop_back();
    pair.back() *= 2;
    parts = {node.reshape(both, pair)};
  }
  if (2 * half < size) parts.push_back(part(2 * half, size - 2 * half, 1));
  return parts.size() == 1 ? parts[0] : node.make("Concat", parts, {{"axis", axis}});
}

Term at_positions(NodeContext& node, const Term& table, const Term& positions) {
  if (table.type.rank() != 2 || positions.type.rank() != 2) {
    node.fail("cosines, sines and positions", "[P, R] and [B, S]",
              to_string(table.type.shape) + " and " + to_string(positions.type.shape));
  }
  const Term rows = node.make("Gather", {table, positions}, {{"axis", std::int64_t{0}}});
  const Shape& s = rows.type.shape;
  return node.reshape(rows, {s[0], 1, s[1], s[2]});
}

void rotary_embedding(NodeContext& node) {
  const std::int64_t heads = node.integer("num_heads", 0);
  const Term x = split_heads(node, node.in(0), heads);
  const auto angles = [&](std::size_t i) {
    if (node.has(3)) return at_positions(node, node.in(i), node.in(3));
    const Shape& s = node.shape(i);
    if (s.size() != 3)
      node.fail("cosines and sines", "[B, S, R] without position_ids", to_string(s));
    return node.reshape(node.in(i), {s[0], 1, s[1], s[2]});
  };
  const Term cos = angles(1), sin = angles(2);
  const std::int64_t rotated = node.integer("rotary_embedding_dim", 0);
  const std::int64_t wanted = rotated > 0 ? rotated : x.type.shape[3];
  if (2 * cos.type.shape[3] != wanted) {
    node.fail("cosines", "half of the " + std::to_string(wanted) + " rotated numbers of a head",
              to_string(node.shape(1)));
  }
  const Term y = rotate(node, x, cos, sin, node.flag("interleaved", false));
  node.out(0, node.rank(0) == 3 ? join_heads(node, y) : y);
}

}  // namespace tandem::importer::operators
