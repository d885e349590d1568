// CausalConvWithState: each channel convolved with what came before, including the state of an
// earlier call.
#include "importer/node_context.h"

namespace tandem::importer::operators {

void causal_conv_with_state(NodeContext& node) {
  const Shape& s = node.shape(0);
  const Shape& w = node.shape(1);
  if (s.size() != 3 || w.size() != 3 || w[0] != s[1] || w[1] != 1 || w[2] < 1) {
    node.fail("input and weight", "[B, C, L] and [C, 1, k]", to_string(s) + " and " + to_string(w));
  }
  const std::int64_t before = w[2] - 1;
  const Term x = node.widen(node.in(0));
  Term all = x;
  if (node.has(3)) {
    if (node.shape(3) != Shape{s[0], s[1], before}) {
      node.fail("past_state", to_string(Shape{s[0], s[1], before}), to_string(node.shape(3)));
    }
    const Term past = node.cast(node.in(3), x.type.dtype);
    all = node.make("Concat", {past, x}, {{"axis", std::int64_t{2}}});
  } else if (before > 0) {
    all = node.make("Pad", {x}, {{"pads", Ints{0, 0, before, 0, 0, 0}}});
  }
  std::vector<Term> inputs{all, node.widen(node.in(1))};
  if (node.has(2)) inputs.push_back(node.widen(node.in(2)));
  Term y = node.make(
      "Conv", inputs,
      {{"strides", Ints{1}}, {"pads", Ints{0, 0}}, {"dilations", Ints{1}}, {"group", s[1]}});
  const std::string activation = node.text("activation", "none");
  if (activation == "silu" || activation == "swish") {
    y = node.make("Mul", {y, node.make("Sigmoid", {y})});
  } else if (activation != "none") {
    node.fail("activation", "silu, swish or none", activation);
  }
  node.out(0, node.cast(y, node.dtype(0)));
  if (!node.wants(1)) return;
  const Term last = node.make("Slice", {all},
                              {{"starts", Ints{0, 0, s[2]}},
                               {"sizes", Ints{s[0], s[1], before}},
                               {"steps", Ints{1, 1, 1}}});
  node.out(1, node.cast(last, node.dtype(0)));
}

}  // namespace tandem::importer::operators
