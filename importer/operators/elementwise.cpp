// Element-wise operators: names that the engine shares, chains for n operands, older broadcasting.
#include <cmath>
#include <limits>

#include "importer/operators/all.h"

namespace tandem::importer {
namespace {

void same_unary(NodeContext& node) { node.out(0, node.make(node.node().op_type(), {node.in(0)})); }

// Before version 7 the second operand was broadcast only where `broadcast` said so, from `axis` on.
Term aligned_operand(NodeContext& node) {
  const Term& b = node.in(1);
  if (node.version() >= 7 || !node.flag("broadcast", false)) return b;
  const auto rank = node.rank(0), own = node.rank(1);
  if (!node.has_attribute("axis") || own == 0) return b;
  const std::int64_t axis = node.axis(node.integer("axis"), rank);
  if (axis + own > rank) node.fail("the second operand reaches beyond the first");
  Shape shape = b.type.shape;
  shape.resize(static_cast<std::size_t>(rank - axis), 1);
  return node.reshape(b, std::move(shape));
}

void same_binary(NodeContext& node) {
  node.out(0, node.make(node.node().op_type(), {node.in(0), aligned_operand(node)}));
}

void chain(NodeContext& node, std::string_view op, bool mean = false) {
  if (node.input_count() == 0) node.fail("no operands");
  Term result = node.in(0);
  for (std::size_t i = 1; i < node.input_count(); ++i) result = node.make(op, {result, node.in(i)});
  if (node.input_count() == 1) {
    result = node.make("Identity", {result});
  } else if (mean) {
    const double share = 1.0 / static_cast<double>(node.input_count());
    result = node.make("Mul", {result, node.scalar(share, result.type.dtype)});
  }
  node.out(0, result);
}

void max(NodeContext& node) { chain(node, "Max"); }
void min(NodeContext& node) { chain(node, "Min"); }
void sum(NodeContext& node) { chain(node, "Add"); }
void mean(NodeContext& node) { chain(node, "Add", true); }

void leaky_relu(NodeContext& node) {
  node.out(0, node.make("LeakyRelu", {node.in(0)}, {{"alpha", node.number("alpha", 0.01)}}));
}

// Bounds: attributes before version 11, then inputs. Integers and bounds that are not constants go
// through Max and Min.
void clip(NodeContext& node) {
  const Term& x = node.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto bound = [&](std::size_t i, const char* name, double none) {
    if (node.version() < 11) return node.number(name, none);
    return node.has(i) ? node.static_number(i, name) : none;
  };
  const auto is_static = [&](std::size_t i) {
    return node.version() < 11 || !node.has(i) || node.in(i).is_constant();
  };
  if (is_float(x.type.dtype) && is_static(1) && is_static(2)) {
    const double low = bound(1, "min", -infinity), high = bound(2, "max", infinity);
    if (std::isnan(low) || std::isnan(high)) node.fail("a bound is not a number");
    // An empty range means its upper bound.
    node.out(0, node.make("Clip", {x}, {{"min", std::min(low, high)}, {"max", high}}));
    return;
  }
  Term result = x;
  if (node.has(1)) result = node.make("Max", {result, node.in(1)});
  if (node.has(2)) result = node.make("Min", {result, node.in(2)});
  if (!node.has(1) && !node.has(2)) result = node.make("Identity", {result});
  node.out(0, result);
}

void gelu(NodeContext& node) {
  const std::string approximate = node.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    node.fail("attribute 'approximate'", "none or tanh", approximate);
  }
  node.out(0, node.make("Gelu", {node.in(0)}, {{"approximate", approximate}}));
}

void where(NodeContext& node) {
  node.out(0, node.make("Where", {node.in(0), node.in(1), node.in(2)}));
}

}  // namespace

void add_elementwise(std::vector<Lowering>& list) {
  for (const char* op : {"Neg", "Abs", "Sign", "Exp", "Log", "Sqrt", "Reciprocal", "Erf", "Tanh",
                         "Sigmoid", "Softplus", "Relu", "Not"}) {
    list.push_back({op, same_unary});
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Less",
                         "Greater", "LessOrEqual", "GreaterOrEqual"}) {
    list.push_back({op, same_binary});
  }
  list.push_back({"Max", max});
  list.push_back({"Min", min});
  list.push_back({"Sum", sum});
  list.push_back({"Mean", mean});
  list.push_back({"LeakyRelu", leaky_relu});
  list.push_back({"Clip", clip});
  list.push_back({"Gelu", gelu});
  list.push_back({"Where", where});
}

}  // namespace tandem::importer
