// Fused nodes for tests of their kernel: the operator's cases, and bodies of other types and sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/pointwise_support.h"

namespace tandem::testing::pointwise {

struct FusedExample {
  std::string name;
  Graph graph;  // one Fused node
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> expected;  // by reference kernels, in double if inputs are float32
  double tolerance = 1e-5;
};

using BuildBody = std::function<std::vector<ValueId>(GraphBuilder&, const std::vector<ValueId>&)>;

/// `build` gets the body's inputs and returns its outputs.
inline std::shared_ptr<const Graph> fused_body(const std::vector<TensorType>& inputs,
                                               const BuildBody& build) {
  GraphBuilder g(operators());
  std::vector<ValueId> x;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    x.push_back(g.input("x" + std::to_string(i), inputs[i]));
  const std::vector<ValueId> y = build(g, x);
  for (std::size_t i = 0; i < y.size(); ++i) g.output("y" + std::to_string(i), y[i]);
  return std::make_shared<const Graph>(g.finish());
}

inline FusedExample fused_example(std::string name, const std::vector<HostTensor>& inputs,
                                  const BuildBody& build, double tolerance) {
  FusedExample example;
  example.name = std::move(name);
  example.inputs = inputs;
  example.tolerance = tolerance;
  const std::vector<TensorType> types = types_of(inputs);
  example.graph = single_node("Fused", types, {}, fused_body(types, build));
  // float32 is compared with double, other types with their own reference.
  std::vector<HostTensor> wide = inputs;
  for (HostTensor& x : wide) {
    if (x.dtype() == DType::float32) x = x.converted(DType::float64);
  }
  const std::vector<TensorType> wide_types = types_of(wide);
  example.expected =
      run_reference(single_node("Fused", wide_types, {}, fused_body(wide_types, build)), wide);
  return example;
}

/// The operator's cases.
std::vector<FusedExample> fused_case_examples();
/// Every function and type, known numbers, casts, and reductions that are split between blocks.
std::vector<FusedExample> more_fused_examples();

}  // namespace tandem::testing::pointwise
