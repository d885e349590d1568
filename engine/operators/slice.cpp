// y[i, j, ...] = x[starts[0] + i steps[0], starts[1] + j steps[1], ...], i < sizes[0], ...
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// Every element that the slice takes lies inside `shape`.
void check_slice(const NodeView& node, const Shape& shape) {
  const Ints& starts = checked_per_axis(node, "starts", shape.size());
  const Ints& sizes = checked_per_axis(node, "sizes", shape.size());
  const Ints& steps = checked_per_axis(node, "steps", shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (steps[i] == 0) node.fail("a step of 0 on axis " + std::to_string(i));
    if (sizes[i] < 0) node.fail("negative size on axis " + std::to_string(i));
    if (sizes[i] == 0) continue;
    const std::int64_t last = starts[i] + (sizes[i] - 1) * steps[i];
    if (starts[i] < 0 || starts[i] >= shape[i] || last < 0 || last >= shape[i]) {
      node.fail("slice out of range on axis " + std::to_string(i),
                "within [0, " + std::to_string(shape[i]) + ")",
                std::to_string(starts[i]) + " to " + std::to_string(last));
    }
  }
}

std::vector<TensorType> infer_slice(const NodeView& node) {
  check_slice(node, node.input(0).shape);
  return {{node.input(0).dtype, node.attributes().integers("sizes")}};
}

Gradients slice_gradient(GradientContext& c) {
  Attributes attributes = c.node.attributes;
  attributes.set("shape", c.g.shape(c.x(0)));
  return {c.g.add_node("SliceGrad", {c.dy[0]}, std::move(attributes))};
}

std::optional<Layout> slice_view(const NodeView& node, const Layout& x) {
  if (!x.is_strided()) return std::nullopt;
  const Ints& starts = node.attributes().integers("starts");
  const Ints& steps = node.attributes().integers("steps");
  const bool empty = element_count(node.attributes().integers("sizes")) == 0;
  Layout result = x;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (!empty) result.offset += starts[i] * x.strides[i];
    result.strides[i] *= steps[i];
  }
  return result;
}

// dx is 0 but for the elements that the slice took.
std::vector<TensorType> infer_slice_gradient(const NodeView& node) {
  const Ints& shape = checked_shape(node, "shape");
  check_slice(node, shape);
  require_shape(node, 0, node.attributes().integers("sizes"));
  return {{node.input(0).dtype, shape}};
}

}  // namespace

Operator slice() {
  return {
      .name = "Slice",
      .inputs = {{"x"}},
      .outputs = {{"y"}},
      .attributes = {{"starts", Ints(), true}, {"sizes", Ints(), true}, {"steps", Ints(), true}},
      .infer = infer_slice,
      .gradient = slice_gradient,
      .view = slice_view,
      .drops_elements = true,
      .takes_float8 = true};
}

Operator slice_grad() {
  return {.name = "SliceGrad",
          .inputs = {{"dy"}},
          .outputs = {{"dx"}},
          .attributes = {{"starts", Ints(), true},
                         {"sizes", Ints(), true},
                         {"steps", Ints(), true},
                         {"shape", Ints(), true}},
          .infer = infer_slice_gradient,
          .not_differentiable = no_second_gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
