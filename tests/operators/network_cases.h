// Helpers of the case tables of the network operators.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/operator_case.h"

namespace tandem::testing {

using Cases = std::vector<OperatorCase>;
using Fill = CaseInput::Fill;

/// ((37 i + 11 k) mod 101 - 50) / 64 for i = 0 to count - 1; operator_expectations.py has the same.
std::vector<double> pattern(std::int64_t count, int k = 0);

/// PyTorch's result for the case "Operator/case" on patterned inputs.
std::vector<double> expectation(const std::string& name);

CaseInput patterned(Shape shape, int k = 0);
CaseInput random_input(Shape shape);
CaseInput valued(Shape shape, std::vector<double> values, DType dtype = DType::float32);
/// A tensor with one axis, and the number of rows for operators on rows.
CaseInput ints(std::vector<double> values, DType dtype = DType::int32);
CaseInput count_of(double rows);
CaseInput indices(Shape shape, double classes, DType dtype = DType::int64);
CaseInput absent();
/// Marks an input that is not differentiated: weights, saved values, statistics.
CaseInput fixed(CaseInput input);

/// Adds a case. If `name` starts with "torch_", the expectation is looked up under the name without
/// that prefix.
OperatorCase& add_case(Cases& cases, std::string op, std::string name,
                       std::vector<CaseInput> inputs, Attributes attributes = {});

/// All outputs of an operator in double on the reference kernels, as inputs for its gradient
/// operator.
std::vector<CaseInput> outputs_of(const std::string& op, const std::vector<CaseInput>& inputs,
                                  const Attributes& attributes);

}  // namespace tandem::testing
