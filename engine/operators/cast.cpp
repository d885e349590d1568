// Converts numbers to another element type; 8-bit floats have FromFloat8 and ToFloat8 (float8.cpp).
#include "engine/operators/elementwise.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_cast(const NodeView& node) {
  const std::string& to = node.attributes().text("to");
  const auto dtype = dtype_from_name(to);
  if (!dtype || is_float8(*dtype)) {
    node.fail("attribute 'to'", "the name of an element type to compute with", "\"" + to + "\"");
  }
  return {{*dtype, node.input(0).shape}};
}

// The gradient flows back between floating point types only.
Gradients cast_gradient(GradientContext& c) {
  const DType from = c.g.dtype(c.x(0));
  if (!is_float(from) || !is_float(c.g.dtype(c.y(0)))) return {ValueId{}};
  return {c.g.cast(c.dy[0], from)};
}

}  // namespace

Operator cast() {
  return {.name = "Cast",
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"to", std::string(), true}},
          .infer = infer_cast,
          .gradient = cast_gradient,
          .scalar = ScalarFunction::cast};
}

}  // namespace tandem::operators
