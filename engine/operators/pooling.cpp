// MaxPool, AveragePool and their gradients.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"
#include "engine/operators/window.h"

namespace tandem::operators {
namespace {

/// kernel_shape, strides, pads, dilations, ceil_mode.
std::vector<AttributeSpec> pooling_attributes() {
  return {{"kernel_shape", Ints{}, true},
          {"strides", Ints{}, true},
          {"pads", Ints{}, true},
          {"dilations", Ints{}, true},
          {"ceil_mode", std::int64_t{0}}};
}

/// The output's shape for x [N, C, spatial...]; throws through `fail`.
Shape pooled_shape(const NodeView& view, const Shape& x) {
  if (x.size() < 3 || x.size() > 5) {
    view.fail("x has the wrong rank", "[N, C] and 1 to 3 spatial axes", to_string(x));
  }
  const std::size_t spatial = x.size() - 2;
  const Ints& kernel = view.attributes().integers("kernel_shape");
  if (kernel.size() != spatial) {
    view.fail("kernel_shape has the wrong length", std::to_string(spatial) + " numbers",
              to_string(kernel));
  }
  for (std::int64_t extent : kernel) {
    if (extent < 1 || extent > (1 << 30)) {
      view.fail("kernel_shape is out of range", "numbers from 1 to 2^30", to_string(kernel));
    }
  }
  require_windows(view, spatial);
  require_flag(view, "ceil_mode");
  const std::vector<Window> windows = windows_of(view.attributes(), kernel);
  for (const Window& window : windows) {
    if (window.pad_begin >= window.extent() || window.pad_end >= window.extent()) {
      view.fail("a window would lie wholly in the padding",
                "pads below the window's extent " + std::to_string(window.extent()),
                to_string(view.attributes().integers("pads")));
    }
  }
  Shape y = output_extents(view, x, kernel, view.attributes().flag("ceil_mode"));
  y.insert(y.begin(), {x[0], x[1]});
  return y;
}

/// One operation for each tap of each window of a y with that shape.
double pooling_flops(const NodeView& view, const Shape& y) {
  const Ints& kernel = view.attributes().integers("kernel_shape");
  return static_cast<double>(element_count(y)) * static_cast<double>(element_count(kernel));
}

std::vector<AttributeSpec> max_attributes() {
  std::vector<AttributeSpec> specs = pooling_attributes();
  specs.push_back({"storage_order", std::int64_t{0}});
  return specs;
}

std::vector<TensorType> infer_of_max(const NodeView& view) {
  require_flag(view, "storage_order");
  const Shape y = pooled_shape(view, view.input(0).shape);
  return {{view.input(0).dtype, y}, {DType::int64, y}};
}

Gradients gradient_of_max(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  return {c.g.add_node("MaxPoolGrad", {c.x(0), c.y(0), c.dy[0]}, c.node.attributes)};
}

Cost cost_of_max(const NodeView& view) {
  // The indices are usually unread and then not written.
  const double bytes = static_cast<double>(view.input(0).bytes() + view.output(0).bytes());
  return {pooling_flops(view, view.output(0).shape), bytes};
}

std::vector<TensorType> infer_grad_of_max(const NodeView& view) {
  require_float(view, 0);
  require_flag(view, "storage_order");
  const TensorType& x = view.input(0);
  const TensorType y{x.dtype, pooled_shape(view, x.shape)};
  require_type(view, 1, y);
  require_type(view, 2, y);
  return {x};
}

Cost cost_grad_of_max(const NodeView& view) {
  return {pooling_flops(view, view.input(1).shape), operand_bytes(view)};
}

std::vector<AttributeSpec> average_attributes(bool with_shape) {
  std::vector<AttributeSpec> specs = pooling_attributes();
  specs.push_back({"count_include_pad", std::int64_t{0}});
  if (with_shape) specs.push_back({"shape", Ints{}, true});
  return specs;
}

std::vector<TensorType> infer_of_average(const NodeView& view) {
  require_float(view, 0);
  require_flag(view, "count_include_pad");
  return {{view.input(0).dtype, pooled_shape(view, view.input(0).shape)}};
}

Gradients gradient_of_average(GradientContext& c) {
  if (!c.dy[0]) return {ValueId{}};
  Attributes attributes = c.node.attributes;
  attributes.set("shape", c.g.shape(c.x(0)));
  return {c.g.add_node("AveragePoolGrad", {c.dy[0]}, std::move(attributes))};
}

Cost cost_of_average(const NodeView& view) {
  return {pooling_flops(view, view.output(0).shape), operand_bytes(view)};
}

std::vector<TensorType> infer_grad_of_average(const NodeView& view) {
  require_float(view, 0);
  require_flag(view, "count_include_pad");
  const Shape& x = view.attributes().integers("shape");
  require_shape(view, 0, pooled_shape(view, x));
  return {{view.input(0).dtype, x}};
}

// Linear in dy: its gradient is the pooling itself.
Gradients gradient_grad_of_average(GradientContext& c) {
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

Cost cost_grad_of_average(const NodeView& view) {
  return {pooling_flops(view, view.input(0).shape), operand_bytes(view)};
}

}  // namespace

// y = the largest element of each window; indices = its place in x, flat. Padding never wins.
Operator max_pool() {
  return {.name = "MaxPool",
          .role = Role::pooling,
          .inputs = {{"x"}},
          .outputs = {{"y"}, {"indices"}},
          .attributes = max_attributes(),
          .infer = infer_of_max,
          .gradient = gradient_of_max,
          .cost = cost_of_max,
          .gradient_compares = [](const Attributes&) { return true; }};
}

// dx: the first element of each window that equals y gets dy.
Operator max_pool_grad() {
  return {.name = "MaxPoolGrad",
          .inputs = {{"x"}, {"y"}, {"dy"}},
          .outputs = {{"dx"}},
          .attributes = max_attributes(),
          .infer = infer_grad_of_max,
          .not_differentiable = "second derivatives of MaxPool are not offered",
          .cost = cost_grad_of_max,
          .engine_only = true};
}

// y = the mean of each window, over the taps inside x, or inside x and its padding
// (count_include_pad).
Operator average_pool() {
  return {.name = "AveragePool",
          .role = Role::pooling,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = average_attributes(false),
          .infer = infer_of_average,
          .gradient = gradient_of_average,
          .cost = cost_of_average};
}

Operator average_pool_grad() {
  return {.name = "AveragePoolGrad",
          .inputs = {{"dy"}},
          .outputs = {{"dx"}},
          .attributes = average_attributes(true),
          .infer = infer_grad_of_average,
          .gradient = gradient_grad_of_average,
          .cost = cost_grad_of_average,
          .engine_only = true};
}

}  // namespace tandem::operators
