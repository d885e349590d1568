// One node on every kernel of a GPU that takes it, against the double reference.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "engine/operators/operator.h"
#include "tests/cuda/support/network_gpu.h"

namespace tandem::testing {

inline const OperatorSet& network_operators() {
  static const OperatorSet set = all_operators();
  return set;
}

/// Allows a few roundings to the type, relative to the largest number.
inline double network_tolerance(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return 1.2e-2;
    case DType::float16:
      return 1.5e-3;
    case DType::float32:
      return 1e-5;
    default:
      return 0;
  }
}

inline Graph graph_in(const OperatorCase& c, DType dtype) {
  return case_graph(c, network_operators(), dtype);
}

/// The inputs of a case rounded to `dtype`, for its graph in that type.
inline std::vector<HostTensor> rounded_inputs(const OperatorCase& c, const Graph& graph) {
  std::vector<HostTensor> inputs = case_inputs(c, DType::float32);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (c.inputs[i].absent) continue;
    inputs[i] = inputs[i].converted(graph.type(graph.nodes[0].inputs[i]).dtype);
  }
  return inputs;
}

/// The results of the double reference for these inputs; integers are computed in their own type.
inline std::vector<HostTensor> in_double(const OperatorCase& c, const Graph& graph,
                                         const std::vector<HostTensor>& inputs) {
  const bool floats = is_float(graph.type(graph.nodes[0].inputs[0]).dtype);
  const Graph wide = floats ? graph_in(c, DType::float64) : graph;
  std::vector<HostTensor> exact;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = wide.nodes[0].inputs[i];
    exact.push_back(id ? inputs[i].converted(wide.type(id).dtype) : HostTensor());
  }
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(wide, wide.nodes[0]));
  if (kernel == nullptr) throw std::runtime_error("no reference kernel");
  return run_node(*kernel, wide, wide.nodes[0], exact);
}

struct NetworkCheck {
  DType dtype = DType::float32;
  std::vector<Layout> input_layouts, output_layouts;
  double tolerance = 0;  // 0: the type's default
  bool only_first_output = false;
};

/// Runs the checks and returns the names of the kernels that ran.
inline std::vector<std::string> check_node(NetworkGpu& gpu, const OperatorCase& c,
                                           const NetworkCheck& how = {}) {
  const Graph graph = graph_in(c, how.dtype);
  const Node& node = graph.nodes[0];
  const std::vector<HostTensor> inputs = rounded_inputs(c, graph);
  const std::vector<HostTensor> expected = in_double(c, graph, inputs);
  std::vector<std::string> ran;
  for (const Kernel& kernel : gpu.kernels) {
    if (kernel.op != c.op) continue;
    SCOPED_TRACE(kernel.name + " " + c.op + " " + c.name + " " + std::string(name_of(how.dtype)));
    if (kernel.refuse(plain_request(graph, node, gpu.facts))) continue;
    ran.push_back(kernel.name);
    RunOptions options = gpu.run_options();
    options.input_layouts = how.input_layouts;
    options.output_layouts = how.output_layouts;
    if (how.only_first_output) options.only_output = 0;
    try {
      const std::vector<HostTensor> results = run_node(kernel, graph, node, inputs, options);
      for (std::size_t i = 0; i < (how.only_first_output ? 1 : results.size()); ++i) {
        const DType type = results[i].type().dtype;
        const double own =
            type == DType::float32 ? network_tolerance(how.dtype) : network_tolerance(type);
        const double tolerance = how.tolerance > 0 ? how.tolerance : own;
        EXPECT_EQ(compare(results[i], expected[i], tolerance), "") << "output " << i;
      }
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  gpu.expect_clean();
  return ran;
}

}  // namespace tandem::testing
