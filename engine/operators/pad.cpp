// x with a border: a constant, its mirror image without the edge, its edge, or itself again.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// The padded shape.
Shape checked_pads(const NodeView& node, const Shape& shape) {
  const std::size_t rank = shape.size();
  const Ints& pads = checked_per_axis(node, "pads", 2 * rank);
  const std::string& mode = node.attributes().text("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    node.fail("attribute 'mode'", "constant, reflect, edge or wrap", mode);
  }
  Shape result = shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t before = pads[i], after = pads[rank + i];
    if (before < 0 || after < 0) node.fail("negative pads", ">= 0", to_string(pads));
    if (shape[i] == 0 && before + after > 0 && mode != "constant") {
      node.fail("nothing to take the border from on axis " + std::to_string(i));
    }
    result[i] += before + after;
  }
  return result;
}

std::vector<TensorType> infer_pad(const NodeView& node) {
  return {{node.input(0).dtype, checked_pads(node, node.input(0).shape)}};
}

// Where the border is constant, dx is a slice of dy.
Gradients pad_gradient(GradientContext& c) {
  const Shape shape = c.g.shape(c.x(0));
  const Ints& pads = c.node.attributes.integers("pads");
  const std::string& mode = c.node.attributes.text("mode");
  if (mode == "constant") {
    return {c.g.add_node("Slice", {c.dy[0]},
                         {{"starts", Ints(pads.begin(), pads.begin() + shape.size())},
                          {"sizes", shape},
                          {"steps", Ints(shape.size(), 1)}})};
  }
  return {c.g.add_node("PadGrad", {c.dy[0]}, {{"pads", pads}, {"mode", mode}, {"shape", shape}})};
}

std::vector<TensorType> infer_pad_gradient(const NodeView& node) {
  require_number(node, 0);
  const Ints& shape = checked_shape(node, "shape");
  require_shape(node, 0, checked_pads(node, shape));
  return {{node.input(0).dtype, shape}};
}

}  // namespace

Operator pad() {
  return {.name = "Pad",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"pads", Ints(), true}, {"mode", std::string("constant")}, {"value", 0.0}},
          .infer = infer_pad,
          .gradient = pad_gradient,
          .drops_elements = true};
}

// dx[j] = the sum of dy over the elements that Pad took from x[j]
Operator pad_grad() {
  return {.name = "PadGrad",
          .inputs = {{"dy"}},
          .outputs = {{"dx"}},
          .attributes = {{"pads", Ints(), true},
                         {"mode", std::string("constant")},
                         {"shape", Ints(), true}},
          .infer = infer_pad_gradient,
          .not_differentiable = no_second_gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
