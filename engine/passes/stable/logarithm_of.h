// Logarithms of values that vanish or overflow where their logarithm does neither.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/rewrite.h"
#include "engine/passes/match.h"

namespace tandem {

/// The logarithm of a value, as operators that stay in range.
struct StableLogarithm {
  std::string name;             // what the new form is called, for people
  std::vector<ValueId> leaves;  // values of the old graph that it reads
  std::function<ValueId(GraphRewrite&)> build;
};

/// Known for sigmoid(x), 1 - sigmoid(x), softmax(x), cosh(x), sums of exponentials, and 1 + x; also
/// through operators that only move elements. Nothing for other values.
std::optional<StableLogarithm> stable_logarithm(const Match& match, ValueId value);

/// Known for sums of exponentials: of a few terms, over axes, up to each element.
std::optional<StableLogarithm> logarithm_of_sum(const Match& match, ValueId value);

/// The parts of value = log(sum(exp(x))), a sum over these axes.
struct LogSumExp {
  ValueId x;
  Ints axes;
  bool keepdims = true;
};
std::optional<LogSumExp> log_sum_exp(const Match& match, ValueId value);

}  // namespace tandem
