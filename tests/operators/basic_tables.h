// Short forms for the case tables of the basic operators.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/operator_case.h"

namespace tandem::testing {
namespace basic {

using Fill = CaseInput::Fill;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline CaseInput uniform(Shape shape, double low = -1, double high = 1) {
  CaseInput input;
  input.shape = std::move(shape);
  input.low = low;
  input.high = high;
  return input;
}

inline CaseInput filled(Shape shape, Fill fill) {
  CaseInput input;
  input.shape = std::move(shape);
  input.fill = fill;
  return input;
}

inline CaseInput typed(DType dtype, Shape shape, double low = -5, double high = 6) {
  CaseInput input;
  input.shape = std::move(shape);
  input.dtype = dtype;
  input.fill = is_float(dtype)           ? Fill::uniform
               : dtype == DType::boolean ? Fill::booleans
                                         : Fill::integers;
  input.low = low;
  input.high = high;
  return input;
}

inline CaseInput values(Shape shape, std::vector<double> numbers, DType dtype = DType::float32) {
  CaseInput input;
  input.shape = std::move(shape);
  input.dtype = dtype;
  input.fill = Fill::values;
  input.values = std::move(numbers);
  return input;
}

inline CaseInput left_out() {
  CaseInput input;
  input.absent = true;
  return input;
}

inline OperatorCase make_case(std::string op, std::string name, std::vector<CaseInput> inputs,
                              Attributes attributes = {}) {
  OperatorCase c;
  c.op = std::move(op);
  c.name = std::move(name);
  c.inputs = std::move(inputs);
  c.attributes = std::move(attributes);
  return c;
}

/// A case at a kink, where finite differences do not give the gradient.
inline OperatorCase without_gradient(OperatorCase c, std::string why) {
  c.check_gradient = false;
  c.why = std::move(why);
  return c;
}

inline OperatorCase expecting(OperatorCase c, std::vector<double> y) {
  c.expected = std::move(y);
  return c;
}

/// Results in a type of 8 (bfloat16) or 11 (float16) significant bits.
inline OperatorCase coarse(OperatorCase c) {
  c.tolerance = 1e-2;
  return c;
}

}  // namespace basic

}  // namespace tandem::testing
