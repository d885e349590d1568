// numpy's broadcasting of x to a shape.
#include "engine/graph/builder.h"
#include "engine/operators/broadcast.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// As ONNX has it, extents of 1 in `shape` keep x's.
std::vector<TensorType> infer_expand(const NodeView& node) {
  const TensorType& x = node.input(0);
  const Ints& shape = checked_shape(node, "shape");
  const auto result = broadcast_shape(x.shape, shape);
  if (!result) node.fail("x does not broadcast to the shape", to_string(shape), to_string(x.shape));
  return {{x.dtype, *result}};
}

Gradients expand_gradient(GradientContext& c) { return {c.g.sum_to(c.dy[0], c.g.shape(c.x(0)))}; }

std::optional<Layout> expand_view(const NodeView& node, const Layout& x) {
  if (!x.is_strided()) return std::nullopt;
  const Shape& from = node.input(0).shape;
  Layout result = x;
  result.strides = broadcast_strides(x.strides, from, infer_expand(node)[0].shape);
  return result;
}

}  // namespace

Operator expand() {
  return {.name = "Expand",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"shape", Ints(), true}},
          .infer = infer_expand,
          .gradient = expand_gradient,
          .view = expand_view,
          .takes_float8 = true};
}

}  // namespace tandem::operators
