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
  std::string name;             // of what it has become, for people
  std::vector<ValueId> leaves;  // of the old graph, that it reads
  std::function<ValueId(GraphRewrite&)> build;
};

/// Of sigmoid(x), 1 - sigmoid(x), softmax(x), sums of exponentials over axes or of a few terms, and
/// 1 + x; also behind operators that only move elements. Nothing where the value is none of these.
std::optional<StableLogarithm> stable_logarithm(const Match& match, ValueId value);

/// What a reduction has taken the logarithm of the sum of exponentials of: x, where value is
/// log(sum(exp(x))) with these axes.
struct LogSumExp {
  ValueId x;
  Ints axes;
  bool keepdims = true;
};
std::optional<LogSumExp> log_sum_exp(const Match& match, ValueId value);

}  // namespace tandem
