// Runs nodes of updates and rows on a fake GPU and on the reference kernels, over given tensors.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

using Tensors = std::vector<HostTensor>;

/// An optional input that is not given.
inline HostTensor no_tensor() { return HostTensor(TensorType{DType::uint8, {-1}}, nullptr, {}); }
inline bool is_given(const HostTensor& tensor) { return tensor.shape() != Shape{-1}; }

inline HostTensor uniform(Shape shape, unsigned seed, double low = -1, double high = 1,
                          DType dtype = DType::float32) {
  HostTensor tensor(TensorType{DType::float64, std::move(shape)});
  std::mt19937_64 random(seed);
  for (double& x : tensor.as<double>()) {
    x = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  }
  return tensor.converted(DType::float32).converted(dtype);
}
template <class T>
HostTensor number_of(T value) {
  return HostTensor::from<T>({}, {value});
}
inline HostTensor truth(bool value) {
  HostTensor tensor(TensorType{DType::boolean, {}});
  *static_cast<bool*>(tensor.data()) = value;
  return tensor;
}
/// The scalars of a step that updates read.
inline Tensors step_scalars(float lr, std::int64_t step, float scale, bool skip) {
  return {number_of(lr), number_of(step), number_of(scale), truth(skip)};
}

inline Graph node_of(const std::string& op, const Tensors& inputs, const Attributes& attributes) {
  static const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  std::vector<ValueId> x;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    x.push_back(is_given(inputs[i]) ? g.input("x" + std::to_string(i), inputs[i].type())
                                    : ValueId{});
  }
  g.set_scope({op});
  const auto y = g.node(op, x, attributes);
  for (std::size_t i = 0; i < y.size(); ++i) g.output("y" + std::to_string(i), y[i]);
  return g.finish();
}

inline Tensors on_reference(const std::string& op, const Tensors& inputs,
                            const Attributes& attributes = {}, const RunOptions& options = {}) {
  const Graph graph = node_of(op, inputs, attributes);
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  if (kernel == nullptr) throw std::runtime_error("no reference kernel for " + op);
  return run_node(*kernel, graph, graph.nodes[0], inputs, options);
}

struct RowGpu : FakeGpu {
  explicit RowGpu(FakeRuntimeOptions options = {}) : FakeGpu(std::move(options)) {
    cuda::add_update_kernels(kernels, gpu);
    cuda::add_row_kernels(kernels, gpu);
  }

  /// Runs the operator on its first kernel that takes it and returns the results.
  Tensors run(const std::string& op, const Tensors& inputs, const Attributes& attributes = {},
              std::vector<Layout> layouts = {}, ErrorWord* error = nullptr) {
    const Graph graph = node_of(op, inputs, attributes);
    std::vector<std::string> refusals;
    const Kernel* kernel =
        choose_kernel(kernels, plain_request(graph, graph.nodes[0], facts), &refusals);
    if (kernel == nullptr) throw std::runtime_error(refusals.empty() ? op : refusals.front());
    RunOptions options = run_options();
    options.input_layouts = std::move(layouts);
    options.error = error;
    Tensors results = run_node(*kernel, graph, graph.nodes[0], inputs, options);
    EXPECT_EQ(problem(), "");
    return results;
  }

  /// Why no kernel takes it; "" if one does.
  std::string refusal(const std::string& op, const Tensors& inputs,
                      const Attributes& attributes = {}) {
    const Graph graph = node_of(op, inputs, attributes);
    std::vector<std::string> refusals;
    if (choose_kernel(kernels, plain_request(graph, graph.nodes[0], facts), &refusals)) return "";
    return refusals.empty() ? "no kernel" : refusals.front();
  }

  /// Number of launches since `clear_calls`.
  int launches() const {
    int count = 0;
    for (const std::string& call : runtime->calls()) count += call.rfind("launch", 0) == 0;
    return count;
  }

  KernelList kernels;
};

inline bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.type() == b.type() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace tandem::testing
