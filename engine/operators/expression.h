// Graphs written as formulas: arithmetic and the scalar functions on handles of values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {

class GraphBuilder;

namespace expressions {

/// Where expressions append their nodes. Equal operators of equal operands become one node.
class ExpressionGraph {
 public:
  explicit ExpressionGraph(GraphBuilder& g) : g_(g) {}

  ValueId make(std::string_view op, const std::vector<ValueId>& inputs,
               const Attributes& attributes = {});
  ValueId number(double value, DType dtype);
  GraphBuilder& builder() { return g_; }

 private:
  struct Made {
    std::string op;
    std::vector<ValueId> inputs;
    Attributes attributes;
    ValueId value;
  };
  struct Number {
    double number = 0;
    DType dtype = DType::float32;
    ValueId value;
  };

  GraphBuilder& g_;
  std::vector<Made> made_;
  std::vector<Number> numbers_;
};

/// A value of a graph, or a number, which takes the element type of the value that it meets.
class Expression {
 public:
  Expression() = default;                        // nothing: no gradient flows
  Expression(double number) : number(number) {}  // NOLINT: formulas say 1 - y
  Expression(ExpressionGraph& graph, ValueId id) : graph(&graph), id(id) {}

  ExpressionGraph* graph = nullptr;
  ValueId id;
  double number = 0;
};

/// A node of any operator.
Expression apply(std::string_view op, const std::vector<Expression>& operands,
                 const Attributes& attributes = {});

inline Expression operator-(const Expression& x) { return apply("Neg", {x}); }
inline Expression operator+(const Expression& a, const Expression& b) {
  return apply("Add", {a, b});
}
inline Expression operator-(const Expression& a, const Expression& b) {
  return apply("Sub", {a, b});
}
inline Expression operator*(const Expression& a, const Expression& b) {
  return apply("Mul", {a, b});
}
inline Expression operator/(const Expression& a, const Expression& b) {
  return apply("Div", {a, b});
}
inline Expression operator==(const Expression& a, const Expression& b) {
  return apply("Equal", {a, b});
}
inline Expression operator<(const Expression& a, const Expression& b) {
  return apply("Less", {a, b});
}
inline Expression operator>(const Expression& a, const Expression& b) {
  return apply("Greater", {a, b});
}
inline Expression operator<=(const Expression& a, const Expression& b) {
  return apply("LessOrEqual", {a, b});
}
inline Expression operator>=(const Expression& a, const Expression& b) {
  return apply("GreaterOrEqual", {a, b});
}
/// condition ? x : y
inline Expression where(const Expression& condition, const Expression& x, const Expression& y) {
  return apply("Where", {condition, x, y});
}

// Every scalar function by its name in the list: sigmoid(x), maximum(a, b).
#define TANDEM_OF_1(function, name)                                                    \
  inline Expression function(const Expression& x, const Attributes& attributes = {}) { \
    return apply(name, {x}, attributes);                                               \
  }
#define TANDEM_OF_2(function, name)                                    \
  inline Expression function(const Expression& a, const Expression& b, \
                             const Attributes& attributes = {}) {      \
    return apply(name, {a, b}, attributes);                            \
  }
#define TANDEM_FUNCTION(function, name, operands, ...) TANDEM_OF_##operands(function, name)
#include "engine/operators/scalar_functions.inl"
#undef TANDEM_OF_1
#undef TANDEM_OF_2

}  // namespace expressions

/// What the gradient of a scalar function is written with: dx of the operand that it is for, before
/// the sum over the axes along which that operand was broadcast.
class Slope {
 public:
  Slope(expressions::ExpressionGraph& graph, GradientContext& context);

  expressions::Expression dy, y;
  expressions::Expression x, a, b;  // x and a are the first operand

  /// Attribute i of the row, as a number.
  double setting(std::size_t i) const { return settings_[i]; }
  /// The sum over the axes along which the operand was broadcast, where it comes before the end.
  expressions::Expression sum(const expressions::Expression& dx) const;
  /// op(dy, second) with the attributes of the function.
  expressions::Expression by(std::string_view op, const expressions::Expression& second) const;

  std::size_t operand = 0;  // whose gradient this is

 private:
  expressions::ExpressionGraph& graph_;
  GradientContext& context_;
  ScalarSettings settings_;
};

/// What a composed function is written with.
class Composition {
 public:
  Composition(expressions::ExpressionGraph& graph, ValueId x, std::vector<double> settings)
      : x(graph, x), settings_(std::move(settings)) {}

  expressions::Expression x;
  /// Attribute i of the row.
  double setting(std::size_t i) const { return settings_[i]; }

 private:
  std::vector<double> settings_;
};

}  // namespace tandem
