// One node on every kernel of the CPU's list that takes it, for tests without case tables.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "tests/harness/operator_case.h"

namespace tandem::testing {

inline const OperatorSet& operator_set() {
  static const OperatorSet set = all_operators();
  return set;
}

/// A graph of one node with inputs of these tensors' types; an empty tensor is an absent input.
inline Graph single_node(const std::string& op, const std::vector<HostTensor>& inputs,
                         const Attributes& attributes, const std::string& path = "node") {
  GraphBuilder g(operator_set());
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool absent = inputs[i].data() == nullptr && inputs[i].type().elements() > 0;
    ids.push_back(absent ? ValueId{} : g.input("x" + std::to_string(i), inputs[i].type()));
  }
  g.set_scope({path});
  const std::vector<ValueId> outputs = g.node(op, ids, attributes);
  for (std::size_t i = 0; i < outputs.size(); ++i) g.output("y" + std::to_string(i), outputs[i]);
  return g.finish();
}

/// Calls f(kernel) for each kernel that takes the graph's only node; fails if none does.
template <class F>
void each_kernel(const Graph& graph, F f) {
  int ran = 0;
  for (const Kernel& kernel : cpu_list()) {
    if (kernel.op != graph.nodes[0].op->name) continue;
    if (kernel.refuse && kernel.refuse(plain_request(graph, graph.nodes[0]))) continue;
    SCOPED_TRACE(kernel.name);
    f(kernel);
    ++ran;
  }
  EXPECT_GT(ran, 0) << "no kernel for " << graph.nodes[0].op->name;
}

/// Runs the node in row-major layouts with the given context.
inline std::vector<HostTensor> run_in_context(const Kernel& kernel, const Graph& graph,
                                              const std::vector<HostTensor>& inputs,
                                              const StepContext& context) {
  const KernelRequest request = plain_request(graph, graph.nodes[0]);
  std::vector<HostTensor> outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const HostTensor& x : inputs) in.push_back(x.data());
  for (const Operand& operand : request.outputs) {
    outputs.emplace_back(operand.type);
    out.push_back(outputs.back().data());
  }
  const std::unique_ptr<PreparedKernel> prepared = kernel.prepare(request);
  HostTensor workspace(
      TensorType{DType::uint8, {static_cast<std::int64_t>(prepared->workspace_bytes)}});
  prepared->run({in.data(), out.data(), workspace.data(), &context});
  return outputs;
}

/// Adds a failure if outputs differ by more than `compare` allows.
inline void expect_equal(const std::vector<HostTensor>& got, const std::vector<HostTensor>& wanted,
                         double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(compare(got[i], wanted[i], tolerance), "") << "output " << i;
  }
}

inline std::vector<double> numbers_of(const HostTensor& x) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < x.type().elements(); ++i) values.push_back(x.number(i));
  return values;
}

inline HostTensor scalar_of(float value) { return HostTensor::from<float>({}, {value}); }

}  // namespace tandem::testing
