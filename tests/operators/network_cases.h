// Helpers of the case tables of the network operators, and their parts.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/operator_case.h"

namespace tandem::testing {

using Cases = std::vector<OperatorCase>;
using Fill = CaseInput::Fill;

/// ((37 i + 11 k) mod 101 - 50) / 64 for i = 0 to count - 1; operator_expectations.py has the same.
std::vector<double> pattern(std::int64_t count, int k = 0);

/// What PyTorch computes for the case "Operator/case" on patterned inputs.
std::vector<double> expectation(const std::string& name);

CaseInput patterned(Shape shape, int k = 0);
CaseInput random_input(Shape shape);
CaseInput valued(Shape shape, std::vector<double> values, DType dtype = DType::float32);
CaseInput indices(Shape shape, double classes, DType dtype = DType::int64);
CaseInput absent();
/// Not to be differentiated: weights, saved values, statistics.
CaseInput fixed(CaseInput input);

/// Adds a case; the expectation is looked up where `name` starts with "torch_" (without that
/// prefix).
OperatorCase& add_case(Cases& cases, std::string op, std::string name,
                       std::vector<CaseInput> inputs, Attributes attributes = {});

/// All outputs of an operator in double on the reference kernels, as inputs for its gradient
/// operator.
std::vector<CaseInput> outputs_of(const std::string& op, const std::vector<CaseInput>& inputs,
                                  const Attributes& attributes);

void add_convolution_cases(Cases& cases);
void add_pooling_cases(Cases& cases);
void add_normalization_cases(Cases& cases);
void add_softmax_cases(Cases& cases);
void add_loss_cases(Cases& cases);
void add_attention_cases(Cases& cases);
void add_update_cases(Cases& cases);
void add_row_cases(Cases& cases);
void add_absent_id_cases(Cases& cases);
void add_rows_ahead_cases(Cases& cases);
void add_cached_row_cases(Cases& cases);
void add_rnn_cases(Cases& cases);

}  // namespace tandem::testing
