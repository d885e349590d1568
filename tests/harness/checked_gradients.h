// Says which gradients the cases of operators check.
#pragma once

#include <vector>

#include "tests/harness/operator_case.h"

namespace tandem::testing {

/// For each operand of the node of `case_graph` in float64: whether the case checks its gradient by
/// differences. Empty where it checks none.
std::vector<bool> checked_gradients(const OperatorCase& operator_case, const Graph& graph);

}  // namespace tandem::testing
