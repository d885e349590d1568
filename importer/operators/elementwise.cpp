// Element-wise operators: functions by the rows of the engine, chains for n operands, older
// broadcasting.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/graph/text.h"
#include "engine/operators/scalar_functions.h"
#include "importer/chosen_rows.h"
#include "importer/node_context.h"
#include "importer/operators/float8.h"

namespace tandem::importer::operators {
namespace {

// The attributes of a row as the file has them; texts and flags are checked.
std::vector<std::pair<std::string, AttributeValue>> attributes_of(
    NodeContext& node, const std::vector<ScalarAttribute>& declared) {
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  for (const ScalarAttribute& attribute : declared) {
    const char* name = attribute.name;
    if (attribute.required && !node.has_attribute(name))
      node.fail("attribute '" + std::string(name) + "' is missing");
    if (const double* number = std::get_if<double>(&attribute.value)) {
      attributes.emplace_back(name, node.number(name, *number));
    } else if (const std::int64_t* flag = std::get_if<std::int64_t>(&attribute.value)) {
      attributes.emplace_back(name, std::int64_t{node.flag(name, *flag != 0)});
    } else {
      const std::string text = node.text(name, std::get<std::string>(attribute.value));
      const std::vector<std::string>& choices = attribute.choices;
      if (std::find(choices.begin(), choices.end(), text) == choices.end())
        node.fail("attribute '" + std::string(name) + "'", joined(choices, " or "), text);
      attributes.emplace_back(name, text);
    }
  }
  return attributes;
}

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

}  // namespace

// A function that the engine has by the same name, with the same attributes.
void scalar_function(NodeContext& node) {
  const std::string& op = node.node().op_type();
  const ScalarRow& row = *scalar_row(node.session().operators.get(op).scalar);
  std::vector<Term> operands{node.in(0)};
  if (row.kind().operands > 1)
    operands.push_back(aligned_operand(node));
  else if (row.kind().predicate)  // IsNaN and IsInf take 8-bit floats
    operands[0] = is_float8(node.dtype(0)) ? node.cast(operands[0], DType::float32) : operands[0];
  Attributes attributes;
  for (const auto& [name, value] : attributes_of(node, row.options.attributes))
    attributes.set(name, value);
  node.out(0, node.make(op, operands, attributes));
}

// An operator that is an expression of others.
void composed_function(NodeContext& node) {
  for (const ComposedFunction& function : composed_functions()) {
    if (function.name != node.node().op_type()) continue;
    std::vector<double> settings;
    for (const auto& [name, value] : attributes_of(node, function.attributes))
      settings.push_back(std::get<double>(value));
    Session& session = node.session();
    const ValueId x = session.place(without_choice(node.in(0)));
    Term y = session.value(compose(session.builder, function, x, std::move(settings)));
    y.rows = node.in(0).rows;  // element by element
    node.out(0, std::move(y));
  }
}

void pow(NodeContext& node) { node.out(0, node.make("Pow", {node.in(0), aligned_operand(node)})); }

void max(NodeContext& node) { chain(node, "Max"); }
void min(NodeContext& node) { chain(node, "Min"); }
void sum(NodeContext& node) { chain(node, "Add"); }
void mean(NodeContext& node) { chain(node, "Add", true); }

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

// Floating-point numbers may have the sign of the divisor from version 28 on.
void mod(NodeContext& node) {
  if (is_float(node.dtype(0)) && !node.flag("fmod", false) && node.version() < 28)
    node.fail("fmod", "1 for floating-point numbers", "0");
  if (is_integer(node.dtype(0)) && node.in(1).is_constant()) {
    for (const std::int64_t divisor : node.in(1).constant->integers())
      if (divisor == 0) node.fail("division by 0");
  }
  scalar_function(node);
}

void where(NodeContext& node) { node.out(0, chosen(node, node.in(0), node.in(1), node.in(2))); }

}  // namespace tandem::importer::operators
