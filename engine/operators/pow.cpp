// x^e with numpy's broadcasting; the exponent may have another type than the base.
#include "engine/operators/elementwise.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

// The gradient of input i, summed over the axes along which it was broadcast.
ValueId summed(GradientContext& c, std::size_t i, ValueId pow_gradient) {
  const Shape shape = c.g.shape(c.x(i));
  return c.g.sum_to(pow_gradient, shape);
}

ValueId number(GradientContext& c, double value) { return c.g.scalar(value, c.g.dtype(c.x(0))); }

ValueId where(GradientContext& c, ValueId condition, ValueId x, ValueId y) {
  return c.g.add_node("Where", {condition, x, y});
}

// The number that a constant holds everywhere, if it does.
std::optional<double> uniform_constant(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!value.constant || value.type.elements() == 0) return std::nullopt;
  const double first = value.constant->number(0);
  for (std::int64_t i = 1; i < value.type.elements(); ++i) {
    if (value.constant->number(i) != first) return std::nullopt;
  }
  return first;
}

// d/dx x^e = e x^(e-1), which is 0 for e = 0 whatever x is.
ValueId power_slope(GradientContext& c, ValueId exponent) {
  if (const auto e = uniform_constant(c.g.graph(), c.x(1))) {
    if (*e == 0) return ValueId{};
    if (*e == 1) return c.dy[0];
    if (*e == 2) return c.g.mul(c.dy[0], c.g.mul(c.x(0), number(c, 2)));
    // A scalar of its own, so that the constant's shape does not matter here.
    const ValueId power = c.g.add_node("Pow", {c.x(0), number(c, *e - 1)});
    return c.g.mul(c.dy[0], c.g.mul(power, number(c, *e)));
  }
  const ValueId less = c.g.sub(exponent, number(c, 1));
  const ValueId slope = c.g.mul(exponent, c.g.add_node("Pow", {c.x(0), less}));
  const ValueId flat = c.g.add_node("Equal", {exponent, number(c, 0)});
  return where(c, flat, number(c, 0), c.g.mul(c.dy[0], slope));
}

// d/de x^e = y log(x), which is 0 for x = 0, e >= 0.
ValueId exponent_slope(GradientContext& c, ValueId exponent) {
  const ValueId slope = c.g.mul(c.y(0), c.g.add_node("Log", {c.x(0)}));
  const ValueId zero = c.g.add_node("Equal", {c.x(0), number(c, 0)});
  const ValueId positive = c.g.add_node("GreaterOrEqual", {exponent, number(c, 0)});
  const ValueId flat = c.g.add_node("And", {zero, positive});
  return where(c, flat, number(c, 0), c.g.mul(c.dy[0], slope));
}

Gradients pow_gradient(GradientContext& c) {
  const ValueId exponent = c.g.cast(c.x(1), c.g.dtype(c.x(0)));
  Gradients dx(2);
  if (c.wanted[0]) {
    const ValueId slope = power_slope(c, exponent);
    if (slope) dx[0] = summed(c, 0, slope);
  }
  if (c.wanted[1] && is_float(c.g.dtype(c.x(1)))) {
    dx[1] = c.g.cast(summed(c, 1, exponent_slope(c, exponent)), c.g.dtype(c.x(1)));
  }
  return dx;
}

std::vector<TensorType> infer_pow(const NodeView& node) {
  require_number(node, 0);
  require_number(node, 1);
  return {{node.input(0).dtype, broadcast_inputs(node, 0, 1)}};
}

}  // namespace

Operator pow() {
  Operator op;
  op.name = "Pow";
  op.inputs = {{"a"}, {"b"}};
  op.outputs = {{"y"}};
  op.infer = infer_pow;
  op.gradient = pow_gradient;
  op.scalar = ScalarFunction::pow;
  op.precision = Precision::float32;
  op.drops_elements = true;  // x^0 is 1
  return op;
}

}  // namespace tandem::operators
