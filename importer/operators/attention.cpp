// ONNX's Attention in its plain form: no caches, no soft cap, equally many heads for keys and
// queries.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

// [B, S, H D] → [B, H, S, D]; four axes stay.
Term split_heads(NodeContext& node, std::size_t i, std::int64_t heads) {
  const Term& x = node.in(i);
  if (x.type.rank() == 4) return x;
  const Shape& s = x.type.shape;
  if (s.size() != 3 || heads < 1 || s[2] % heads != 0) {
    node.fail("queries, keys and values", "[B, H, S, D], or [B, S, H D] with the number of heads",
              to_string(s));
  }
  return node.transpose(node.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

Term mask_of(NodeContext& node, DType dtype) {
  const Term& mask = node.in(3);
  if (mask.type.dtype != DType::boolean) return node.cast(mask, dtype);
  const Term blocked = node.scalar(-std::numeric_limits<double>::infinity(), dtype);
  return node.make("Where", {mask, node.scalar(0, dtype), blocked});
}

}  // namespace

void attention(NodeContext& node) {
  for (const onnx::AttributeProto& attribute : node.node().attribute()) {
    static constexpr std::array known{
        "is_causal", "kv_num_heads", "q_num_heads",      "qk_matmul_output_mode",
        "scale",     "softcap",      "softmax_precision"};
    if (std::find(known.begin(), known.end(), attribute.name()) == known.end()) {
      node.unsupported("with " + attribute.name());
    }
  }
  for (std::size_t i = 4; i < 7; ++i) {
    if (node.has(i)) node.unsupported("with cached keys and values");
  }
  if (node.number("softcap", 0.0) != 0.0) node.unsupported("with a soft cap");
  for (std::size_t i = 1; i < 4; ++i) {
    if (node.wants(i)) node.unsupported("with outputs beside the first");
  }
  const std::int64_t heads = node.integer("q_num_heads", 0);
  const Term q = split_heads(node, 0, heads);
  const Term k = split_heads(node, 1, node.integer("kv_num_heads", heads));
  const Term v = split_heads(node, 2, node.integer("kv_num_heads", heads));
  const Shape &qs = q.type.shape, &ks = k.type.shape;
  if (ks[1] != qs[1]) node.unsupported("with fewer heads for keys than for queries");
  const bool causal = node.flag("is_causal", false);
  // The engine aligns the last query with the last key, ONNX the first with the first.
  if (causal && qs[2] != ks[2]) node.unsupported("causal over unequal lengths");
  std::vector<Term> inputs{q, k, v};
  if (node.has(3)) {
    inputs.push_back(mask_of(node, q.type.dtype));
    if (inputs[3].type.shape.empty() || inputs[3].type.shape.back() != ks[2]) {
      node.unsupported("with a mask shorter than the keys");
    }
  }
  const double scale = node.number("scale", 1.0 / std::sqrt(static_cast<double>(qs[3])));
  Term y = node.make("Attention", inputs, {{"scale", scale}, {"causal", std::int64_t{causal}}});
  if (node.rank(0) == 3) {
    const Shape s = y.type.shape;
    y = node.reshape(node.transpose(y, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }
  node.out(0, y);
}

}  // namespace tandem::importer::operators
