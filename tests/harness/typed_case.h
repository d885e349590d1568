// An operator case in one computing type: the node, its operands, and the reference's result in
// double for the same numbers.
#pragma once

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/harness/operator_case.h"

namespace tandem::testing {

/// Inputs converted to the types of the graph; absent ones stay empty.
inline std::vector<HostTensor> in_types_of(const Graph& graph, std::vector<HostTensor> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.nodes[0].inputs[i];
    if (id) inputs[i] = inputs[i].converted(graph.type(id).dtype);
  }
  return inputs;
}

inline std::vector<HostTensor> run_reference(const Graph& graph,
                                             const std::vector<HostTensor>& inputs) {
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  if (kernel == nullptr) throw std::runtime_error("no reference for " + graph.nodes[0].op->name);
  return run_node(*kernel, graph, graph.nodes[0], inputs);
}

/// Replaces numbers outside the type's range by their values in the type: infinities, and multiples
/// of its smallest number. Others are unchanged.
inline HostTensor in_range_of(DType dtype, const HostTensor& wide) {
  if (wide.dtype() != DType::float64 || dtype != DType::float16) return wide;
  constexpr double least_normal = 0x1p-14;
  HostTensor result = wide.clone();
  const HostTensor narrow = wide.converted(dtype);
  for (std::int64_t i = 0; i < wide.type().elements(); ++i) {
    const double x = narrow.number(i);
    if (std::isinf(x) || std::fabs(x) < least_normal) result.as<double>()[i] = x;
  }
  return result;
}

struct TypedCase {
  /// Throws Error where the operator has no such type.
  TypedCase(const OperatorCase& of, const OperatorSet& operators, DType computed)
      : graph(case_graph(of, operators, computed)),
        wide(case_graph(of, operators, DType::float64)),
        inputs(in_types_of(graph, case_inputs(of, DType::float32))),
        expected(run_reference(wide, in_types_of(wide, inputs))) {}

  const Node& node() const { return graph.nodes[0]; }

  Graph graph, wide;
  std::vector<HostTensor> inputs, expected;
};

}  // namespace tandem::testing
