#include "engine/operators/expression.h"

#include <cassert>

#include "engine/graph/builder.h"

namespace tandem {
namespace expressions {

ValueId ExpressionGraph::make(std::string_view op, const std::vector<ValueId>& inputs,
                              const Attributes& attributes) {
  for (const Made& made : made_) {
    if (made.op == op && made.inputs == inputs && made.attributes == attributes) return made.value;
  }
  const ValueId value = g_.add_node(op, inputs, attributes);
  made_.push_back({std::string(op), inputs, attributes, value});
  return value;
}

ValueId ExpressionGraph::number(double value, DType dtype) {
  for (const Number& made : numbers_) {
    if (made.number == value && made.dtype == dtype) return made.value;
  }
  numbers_.push_back({value, dtype, g_.scalar(value, dtype)});
  return numbers_.back().value;
}

Expression apply(std::string_view op, const std::vector<Expression>& operands,
                 const Attributes& attributes) {
  // The last operand that is a value gives numbers their type: the first operand of Where is a
  // condition.
  ExpressionGraph* graph = nullptr;
  DType dtype = DType::float32;
  for (const Expression& operand : operands) {
    if (operand.graph == nullptr) continue;
    graph = operand.graph;
    dtype = graph->builder().dtype(operand.id);
  }
  assert(graph != nullptr && "an expression of only numbers");
  std::vector<ValueId> inputs;
  for (const Expression& operand : operands) {
    inputs.push_back(operand.graph != nullptr ? operand.id : graph->number(operand.number, dtype));
  }
  return {*graph, graph->make(op, inputs, attributes)};
}

}  // namespace expressions

Slope::Slope(expressions::ExpressionGraph& graph, GradientContext& context)
    : dy(graph, context.dy[0]),
      y(graph, context.y(0)),
      x(graph, context.x(0)),
      a(x),
      b(context.node.inputs.size() > 1 ? expressions::Expression(graph, context.x(1))
                                       : expressions::Expression()),
      graph_(graph),
      context_(context),
      settings_(scalar_settings(context.node)) {}

expressions::Expression Slope::sum(const expressions::Expression& dx) const {
  const Shape shape = context_.g.shape(context_.x(operand));
  return {graph_, context_.g.sum_to(dx.id, shape)};
}

expressions::Expression Slope::by(std::string_view op,
                                  const expressions::Expression& second) const {
  return expressions::apply(op, {dy, second}, context_.node.attributes);
}

}  // namespace tandem
