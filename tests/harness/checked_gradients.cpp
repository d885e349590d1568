#include "tests/harness/checked_gradients.h"

#include <algorithm>

namespace tandem::testing {

std::vector<bool> checked_gradients(const OperatorCase& operator_case, const Graph& graph) {
  const Node& node = graph.nodes[0];
  if (!operator_case.check_gradient || graph.type(node.outputs[0]).dtype != DType::float64)
    return {};
  std::vector<bool> checked;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    checked.push_back(id && graph.type(id).dtype == DType::float64 &&
                      (i >= operator_case.inputs.size() || operator_case.inputs[i].differentiable));
  }
  const bool any = std::find(checked.begin(), checked.end(), true) != checked.end();
  return any ? checked : std::vector<bool>();
}

}  // namespace tandem::testing
