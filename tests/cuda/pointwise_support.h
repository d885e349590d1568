// Runs nodes on the GPU's element-wise kernels over the fake runtime, and on the reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "kernels/cuda/context.h"
#include "tests/cuda/support/fake_gpu.h"
#include "tests/harness/layout_variants.h"
#include "tests/harness/operator_case.h"

namespace tandem::testing::pointwise {

inline const OperatorSet& operators() {
  static const OperatorSet set = all_operators();
  return set;
}

/// A graph of one node with inputs of these types.
inline Graph single_node(const std::string& op, const std::vector<TensorType>& inputs,
                         const Attributes& attributes = {},
                         std::shared_ptr<const Graph> body = nullptr) {
  GraphBuilder g(operators());
  std::vector<ValueId> x;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    x.push_back(g.input("x" + std::to_string(i), inputs[i]));
  g.set_scope({op});
  const auto y = g.node(op, x, attributes, std::move(body));
  for (std::size_t i = 0; i < y.size(); ++i) g.output("y" + std::to_string(i), y[i]);
  return g.finish();
}

/// Random numbers of any type: small integers for integer types, 0 or 1 for bool.
inline HostTensor random_numbers(Shape shape, DType dtype, unsigned seed, double low = -4,
                                 double high = 4) {
  HostTensor tensor(TensorType{DType::float64, std::move(shape)});
  std::mt19937_64 random(seed);
  const bool fractions = is_float(dtype);
  const bool is_unsigned = dtype == DType::uint8 || dtype == DType::uint16 ||
                           dtype == DType::uint32 || dtype == DType::uint64;
  for (double& x : tensor.as<double>()) {
    x = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    if (!fractions) x = std::floor(x);
    if (is_unsigned) x = std::abs(x);
    if (dtype == DType::boolean) x = random() % 2 == 0 ? 0 : 1;
  }
  return tensor.converted(dtype);
}

inline Layout row_major_from(const Shape& shape, std::int64_t offset) {
  Layout layout = row_major(shape);
  layout.offset = offset;
  return layout;
}

/// Row-major, one element after an aligned address.
inline Layout one_element_off(const Shape& shape) { return row_major_from(shape, 1); }

inline std::vector<LayoutVariant> all_variants() {
  std::vector<LayoutVariant> all(std::begin(layout_variants), std::end(layout_variants));
  all.push_back({"one element off", one_element_off});
  return all;
}

/// The GPU's kernels that `add` lists, over the fake runtime.
class GpuKernels {
 public:
  using Add = void (*)(KernelList&, const cuda::Gpu&);

  explicit GpuKernels(Add add, std::shared_ptr<cuda::Libraries> libraries = nullptr,
                      FakeRuntimeOptions options = {})
      : gpu_(std::move(options), std::move(libraries)) {
    add(list_, gpu_.gpu);
  }

  FakeGpu& gpu() { return gpu_; }
  const KernelList& list() const { return list_; }

  const Kernel* find(const Graph& graph) {
    return choose_kernel(list_, plain_request(graph, graph.nodes[0], gpu_.facts));
  }

  /// The results of the first kernel that takes the graph's only node. Fails if none takes it or if
  /// a rule of the runtime is broken.
  std::vector<HostTensor> run(const Graph& graph, const std::vector<HostTensor>& inputs,
                              const std::vector<Layout>& input_layouts = {},
                              const std::vector<Layout>& output_layouts = {},
                              ErrorWord* error = nullptr) {
    std::vector<std::string> refusals;
    const Kernel* kernel =
        choose_kernel(list_, plain_request(graph, graph.nodes[0], gpu_.facts), &refusals);
    if (kernel == nullptr) {
      std::string text = "no kernel for " + graph.nodes[0].op->name;
      for (const std::string& refusal : refusals) text += "; " + refusal;
      throw std::runtime_error(text);
    }
    RunOptions options = gpu_.run_options();
    options.input_layouts = input_layouts;
    options.output_layouts = output_layouts;
    options.error = error;
    auto results = run_node(*kernel, graph, graph.nodes[0], inputs, options);
    EXPECT_EQ(gpu_.problem(), "") << kernel->name;
    return results;
  }

 private:
  FakeGpu gpu_;
  KernelList list_;
};

/// The results of the reference kernel in the node's own types.
inline std::vector<HostTensor> run_reference(const Graph& graph,
                                             const std::vector<HostTensor>& inputs,
                                             ErrorWord* error = nullptr) {
  const Kernel* kernel = choose_kernel(reference_list(), plain_request(graph, graph.nodes[0]));
  if (kernel == nullptr) throw std::runtime_error("no reference for " + graph.nodes[0].op->name);
  RunOptions options;
  options.error = error;
  return run_node(*kernel, graph, graph.nodes[0], inputs, options);
}

inline std::vector<TensorType> types_of(const std::vector<HostTensor>& tensors) {
  std::vector<TensorType> types;
  for (const HostTensor& tensor : tensors) types.push_back(tensor.type());
  return types;
}

inline void expect_equal(const std::vector<HostTensor>& results,
                         const std::vector<HostTensor>& expected, double tolerance) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(compare(results[i], expected[i], tolerance), "") << "output " << i;
  }
}

/// The relative error of one rounding to the type.
inline double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 1e-3;
    case DType::bfloat16:
      return 8e-3;
    case DType::float32:
      return 1e-6;
    case DType::float64:
      return 1e-14;
    default:
      return 0;
  }
}

/// The element-wise kernels, shared by all tests.
inline GpuKernels& kernels() {
  static GpuKernels own(cuda::add_pointwise_kernels);
  return own;
}

/// Adds a failure if the GPU and the reference of the same types differ.
inline void check(const std::string& op, const std::vector<HostTensor>& inputs,
                  const Attributes& attributes = {}, double tolerance = 0,
                  const std::vector<Layout>& input_layouts = {},
                  const std::vector<Layout>& output_layouts = {}) {
  SCOPED_TRACE(op + " of " + to_string(inputs[0].type()));
  try {
    const Graph graph = single_node(op, types_of(inputs), attributes);
    expect_equal(kernels().run(graph, inputs, input_layouts, output_layouts),
                 run_reference(graph, inputs), tolerance);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

}  // namespace tandem::testing::pointwise
