// y = the mean of each window, over the taps inside x, or inside x and its padding
// (count_include_pad).
#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "engine/operators/pooling.h"

namespace tandem::operators {
namespace {

std::vector<AttributeSpec> attributes(bool with_shape) {
  std::vector<AttributeSpec> specs = pooling_attributes();
  specs.push_back({"count_include_pad", std::int64_t{0}});
  if (with_shape) specs.push_back({"shape", Ints{}, true});
  return specs;
}

std::vector<TensorType> infer(const NodeView& view) {
  require_float(view, 0);
  require_flag(view, "count_include_pad");
  return {{view.input(0).dtype, pooled_shape(view, view.input(0).shape)}};
}

Gradients gradient(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  Attributes attributes = c.node.attributes;
  attributes.set("shape", c.g.shape(c.x(0)));
  return {c.g.add_node("AveragePoolGrad", {c.dy[0]}, std::move(attributes))};
}

Cost cost(const NodeView& view) {
  return {pooling_flops(view, view.output(0).shape), operand_bytes(view)};
}

std::vector<TensorType> infer_grad(const NodeView& view) {
  require_float(view, 0);
  require_flag(view, "count_include_pad");
  const Shape& x = view.attributes().integers("shape");
  require_shape(view, 0, pooled_shape(view, x));
  return {{view.input(0).dtype, x}};
}

// Linear in dy: its gradient is the pooling itself.
Gradients gradient_grad(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  const Attributes& from = c.node.attributes;
  return {c.g.add_node("AveragePool", {c.dy[0]},
                       {{"kernel_shape", from.integers("kernel_shape")},
                        {"strides", from.integers("strides")},
                        {"pads", from.integers("pads")},
                        {"dilations", from.integers("dilations")},
                        {"ceil_mode", from.integer("ceil_mode")},
                        {"count_include_pad", from.integer("count_include_pad")}})};
}

Cost cost_grad(const NodeView& view) {
  return {pooling_flops(view, view.input(0).shape), operand_bytes(view)};
}

}  // namespace

Operator average_pool() {
  return {.name = "AveragePool",
          .role = Role::pooling,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = attributes(false),
          .infer = infer,
          .gradient = gradient,
          .cost = cost};
}

Operator average_pool_grad() {
  return {.name = "AveragePoolGrad",
          .inputs = {{"dy"}},
          .outputs = {{"dx"}},
          .attributes = attributes(true),
          .infer = infer_grad,
          .gradient = gradient_grad,
          .cost = cost_grad,
          .engine_only = true};
}

}  // namespace tandem::operators
