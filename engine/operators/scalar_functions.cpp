// The operators of the scalar functions, made of their rows.
#include "engine/operators/scalar_functions.h"

#include <algorithm>
#include <cassert>
#include <numbers>

#include "engine/graph/builder.h"
#include "engine/graph/text.h"
#include "engine/operators/checks.h"
#include "engine/operators/elementwise.h"
#include "engine/operators/expression.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

using expressions::Expression;

constexpr double infinity = std::numeric_limits<double>::infinity();

// The derivative is 0 wherever it exists.
Expression flat(Slope&) { return {}; }

// The slope of an operand of Max or Min; `behind`: where the other operand is the result.
Expression extremum(Slope& g, const Expression& behind) {
  return where(behind, 0, where(g.a == g.b, g.dy * 0.5, g.dy));
}

const ScalarAttribute& attribute_of(const ScalarRow& row, const std::string& name) {
  for (const ScalarAttribute& attribute : row.options.attributes) {
    if (attribute.name == name) return attribute;
  }
  assert(false && "an attribute that the row does not have");
  return row.options.attributes[0];
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

void check_attributes(const NodeView& node, const ScalarRow& row) {
  for (const auto& [name, value] : node.attributes().entries()) {
    const ScalarAttribute& attribute = attribute_of(row, name);
    if (const std::string* text = std::get_if<std::string>(&value)) {
      const std::vector<std::string>& choices = attribute.choices;
      if (std::find(choices.begin(), choices.end(), *text) != choices.end()) continue;
      node.fail("attribute '" + name + "'", joined(choices, " or ", quoted), quoted(*text));
    }
    if (const std::int64_t* flag = std::get_if<std::int64_t>(&value)) {
      if (*flag != 0 && *flag != 1)
        node.fail("attribute '" + name + "'", "0 or 1", std::to_string(*flag));
    }
  }
}

void require_types(const NodeView& node, ScalarTypes types) {
  switch (types) {
    case ScalarTypes::numbers:
      return require_number(node, 0);
    case ScalarTypes::floats:
      return require_float(node, 0);
    case ScalarTypes::integers:
      return require_integer(node, 0);
    case ScalarTypes::booleans:
      return require_dtype(node, 0, DType::boolean);
    case ScalarTypes::any:
    case ScalarTypes::own:
      return;
  }
}

std::vector<TensorType> infer_scalar(const NodeView& node) {
  const ScalarRow& row = *scalar_row(node.node.op->scalar);
  const ScalarKind kind = row.kind();
  check_attributes(node, row);
  require_types(node, kind.types);
  TensorType y = node.input(0);
  if (kind.operands > 1) {
    require_same_dtype(node, 0, 1);
    if (row.options.with != nullptr)
      require_shape(node, 1, y.shape);
    else
      y.shape = broadcast_inputs(node, 0, 1);
  }
  if (kind.predicate) y.dtype = DType::boolean;
  return {y};
}

Gradients scalar_gradient(GradientContext& c) {
  const ScalarRow& row = *scalar_row(c.node.op->scalar);
  expressions::ExpressionGraph graph(c.g);
  Slope g(graph, c);
  Gradients dx(c.node.inputs.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const auto formula = i == 0 ? row.options.gradient.of_first : row.options.gradient.of_second;
    if (!c.wanted[i] || formula == nullptr) continue;
    g.operand = i;
    const Expression slope = formula(g);
    if (slope.graph != nullptr) dx[i] = g.sum(slope).id;
  }
  return dx;
}

Operator operator_of(const ScalarRow& row) {
  const ScalarOptions& options = row.options;
  Operator op;
  op.name = row.name;
  op.inputs = row.kind().operands == 1 ? std::vector<Port>{{"x"}} : std::vector<Port>{{"a"}, {"b"}};
  op.outputs = {{"y"}};
  if (options.with != nullptr) {
    op.inputs = {{"dy"}, {options.with}};
    op.outputs = {{"dx"}};
    op.not_differentiable = no_second_gradient;
  }
  if (row.kind().predicate) op.not_differentiable = "bool";
  if (options.not_differentiable != nullptr) op.not_differentiable = options.not_differentiable;
  for (const ScalarAttribute& attribute : options.attributes)
    op.attributes.push_back({attribute.name, attribute.value, attribute.required});
  op.infer = infer_scalar;
  if (options.gradient.of_first != nullptr) op.gradient = scalar_gradient;
  op.scalar = row.function;
  op.precision = options.precision;
  op.engine_only = row.engine_only();
  return op;
}

}  // namespace

const std::vector<ScalarRow>& scalar_rows() {
  static const std::vector<ScalarRow> rows{
#define TANDEM_FUNCTION(function, name, operands, types, ...) \
  {ScalarFunction::function, #function, name, ScalarOptions{__VA_ARGS__}},
#include "engine/operators/scalar_functions.inl"
  };
  return rows;
}

const ScalarRow* scalar_row(ScalarFunction f) {
  const std::vector<ScalarRow>& rows = scalar_rows();
  const auto place = static_cast<int>(f) - static_cast<int>(rows[0].function);
  return place < 0 ? nullptr : &rows[static_cast<std::size_t>(place)];
}

ScalarSettings scalar_settings(const Node& node) {
  ScalarSettings settings{};
  const ScalarRow* row = scalar_row(node.op->scalar);
  if (row == nullptr) return settings;
  std::size_t i = 0;
  for (const ScalarAttribute& attribute : row->options.attributes) {
    const AttributeValue& value = *node.attributes.find(attribute.name);
    double& setting = settings.at(i++);
    if (const double* number = std::get_if<double>(&value)) {
      setting = *number;
    } else if (const std::int64_t* flag = std::get_if<std::int64_t>(&value)) {
      setting = static_cast<double>(*flag);
    } else {
      const std::vector<std::string>& choices = attribute.choices;
      const auto at = std::find(choices.begin(), choices.end(), std::get<std::string>(value));
      setting = static_cast<double>(at - choices.begin());
    }
  }
  return settings;
}

const std::vector<ComposedFunction>& composed_functions() {
  static const std::vector<ComposedFunction> functions{
#define TANDEM_COMPOSED(name, ...) {name, __VA_ARGS__},
#include "engine/operators/scalar_functions.inl"
  };
  return functions;
}

ValueId compose(GraphBuilder& g, const ComposedFunction& function, ValueId x,
                std::vector<double> settings) {
  expressions::ExpressionGraph graph(g);
  Composition composition(graph, x, std::move(settings));
  return function.build(composition).id;
}

namespace operators {

void add_scalar_functions(OperatorSet& set) {
  for (const ScalarRow& row : scalar_rows()) set.add(operator_of(row));
}

}  // namespace operators
}  // namespace tandem
