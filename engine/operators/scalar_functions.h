// The scalar functions: their list, and what the rows of scalar_functions.inl say about each.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "engine/operators/operator.h"

namespace tandem {

namespace expressions {
class Expression;
}
class Composition;
class Slope;

/// What Fused bodies and element-wise kernels compute. One node of an operator with a
/// ScalarFunction computes f element by element with broadcasting.
enum class ScalarFunction : std::uint8_t {
  none,
  // Functions whose operators are defined on their own.
  identity,
  cast,
  pow,
  where,  // (condition, x, y)
#define TANDEM_FUNCTION(function, ...) function,
#include "engine/operators/scalar_functions.inl"
};

/// The element types of the operands. The result has the same, or is bool (a predicate).
enum class ScalarTypes : std::uint8_t {
  numbers,
  floats,
  integers,
  booleans,
  any,
  own,  // no row: the kernels are written for only this function
};

struct ScalarKind {
  int operands = 0;
  ScalarTypes types = ScalarTypes::own;
  bool predicate = false;
};

constexpr ScalarKind kind_of(ScalarFunction f) {
  switch (f) {
#define TANDEM_FUNCTION(function, name, operands, types, ...) \
  case ScalarFunction::function:                              \
    return {operands, ScalarTypes::types, false};
#define TANDEM_PREDICATE(function, name, operands, types, ...) \
  case ScalarFunction::function:                               \
    return {operands, ScalarTypes::types, true};
#include "engine/operators/scalar_functions.inl"
    case ScalarFunction::none:
      return {};
    case ScalarFunction::identity:
    case ScalarFunction::cast:
      return {1, ScalarTypes::own, false};
    case ScalarFunction::pow:
      return {2, ScalarTypes::own, false};
    case ScalarFunction::where:
      return {3, ScalarTypes::own, false};
  }
  return {};
}
constexpr ScalarTypes types_of(ScalarFunction f) { return kind_of(f).types; }
constexpr bool is_binary(ScalarFunction f) { return kind_of(f).operands == 2; }
/// Functions with a bool result whatever their operands are.
constexpr bool is_predicate(ScalarFunction f) { return kind_of(f).predicate; }

/// Whether operands may have that type; only for functions with rows.
inline bool takes(ScalarTypes types, DType dtype) {
  if (is_float8(dtype)) return false;
  switch (types) {
    case ScalarTypes::numbers:
      return dtype != DType::boolean;
    case ScalarTypes::floats:
      return is_float(dtype);
    case ScalarTypes::integers:
      return is_integer(dtype);
    case ScalarTypes::booleans:
      return dtype == DType::boolean;
    case ScalarTypes::any:
    case ScalarTypes::own:
      break;
  }
  return true;
}

/// An attribute of a function. Kernels get it as a number: a flag as 0 or 1, a text as its place
/// among the choices.
struct ScalarAttribute {
  const char* name;
  AttributeValue value;                // the default; an integer is a flag
  std::vector<std::string> choices{};  // the values that a text may have
  bool required = false;               // ONNX has no default
};

/// Attributes of a node, by their place in the row.
using ScalarSettings = std::array<double, 2>;

/// A formula for each operand; the second is null where there is one operand.
struct ScalarGradient {
  using Formula = expressions::Expression (*)(Slope& g);
  Formula of_first = nullptr, of_second = nullptr;
};

/// Operands for which a function is a number.
struct ScalarDomain {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

/// What a row may say after its positional part.
struct ScalarOptions {
  double cost = 60;  // nanoseconds for 1,024 elements of float32 in the first cache, about
  Precision precision = Precision::follow;
  ScalarDomain domain{};                      // for functions of one operand
  std::vector<ScalarAttribute> attributes{};  // at most two
  ScalarGradient gradient{};
  const char* not_differentiable = nullptr;  // a reason; predicates and helpers have theirs
  /// A helper of a gradient, (dy, x) or (dy, y) of one shape: the name of the second operand.
  const char* with = nullptr;
  bool engine_only = false;  // no operator of ONNX
  /// An activation of recurrent layers: there is code for the slope, too, CODE_slope(x,
  /// attributes).
  bool recurrent = false;
};

struct ScalarRow {
  ScalarFunction function;
  const char* code;  // the function in kernels/shared/scalar.h
  const char* name;  // the operator, as ONNX names it where it has it
  ScalarOptions options;

  ScalarKind kind() const { return kind_of(function); }
  bool engine_only() const { return options.engine_only || options.with != nullptr; }
};

/// All rows, in their order.
const std::vector<ScalarRow>& scalar_rows();
/// The row of a function; null where it has an operator of its own.
const ScalarRow* scalar_row(ScalarFunction f);
/// The attributes of a node with a scalar function, as kernels get them.
ScalarSettings scalar_settings(const Node& node);

/// A function that is an expression of others, expanded where a graph is imported.
struct ComposedFunction {
  const char* name;                         // ONNX's operator, of one operand
  std::vector<ScalarAttribute> attributes;  // numbers
  expressions::Expression (*build)(Composition& g);
};
const std::vector<ComposedFunction>& composed_functions();
/// The function of x with those attributes, in the order of the row.
ValueId compose(GraphBuilder& g, const ComposedFunction& function, ValueId x,
                std::vector<double> settings);

}  // namespace tandem
