// Every case of every operator on every kernel of the GPU, over the fake runtime and libraries, in
// all layouts and types, also with NaN and infinities in its operands. Also checks the list of
// cases without a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "engine/graph/error.h"
#include "tests/cuda/support/fake_gpu.h"
#include "tests/cuda/support/fake_libraries.h"
#include "tests/cuda/support/fake_nvrtc.h"
#include "tests/cuda/support/listed_gaps.h"
#include "tests/harness/layout_variants.h"
#include "tests/harness/operator_case.h"
#include "tests/harness/poisoned_case.h"

namespace tandem::testing {
namespace {

const OperatorSet& parity_operators() {
  static const OperatorSet set = all_operators();
  return set;
}

const std::vector<OperatorCase>& cases() {
  static const std::vector<OperatorCase> list = all_cases();
  return list;
}

struct WholeGpu : FakeGpu {
  WholeGpu() : libraries(std::make_shared<FakeLibraries>(runtime)) {
    libraries->compiler = &fake_nvrtc();
    gpu->libraries = libraries;
    kernels = cuda::cuda_kernels(gpu);
  }
  std::shared_ptr<FakeLibraries> libraries;
  KernelList kernels;
  std::size_t known = 0, known_of_libraries = 0;  // problems that were reported
};

/// One for all tests of a suite. Only one can exist, so each suite destroys its own.
std::unique_ptr<WholeGpu>& own_gpu() {
  static std::unique_ptr<WholeGpu> own;
  return own;
}
WholeGpu& whole_gpu() {
  if (!own_gpu()) own_gpu() = std::make_unique<WholeGpu>();
  return *own_gpu();
}

void expect_results(const std::vector<HostTensor>& results, const std::vector<HostTensor>& expected,
                    double tolerance) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(compare(results[i], in_range_of(results[i].dtype(), expected[i]), tolerance), "")
        << "output " << i;
  }
}

bool updates_in_place(const Operator& op) {
  return !op.aliases.empty() || op.name == "GroupedUpdate";
}

void check_layouts(const Kernel& kernel, const TypedCase& typed, double tolerance) {
  for (const LayoutVariant& variant : layout_variants) {
    SCOPED_TRACE(variant.name);
    RunOptions options = whole_gpu().run_options();
    for (const HostTensor& x : typed.inputs)
      options.input_layouts.push_back(variant.layout(x.shape()));
    for (const HostTensor& y : typed.expected)
      options.output_layouts.push_back(variant.layout(y.shape()));
    expect_results(run_node(kernel, typed.graph, typed.node(), typed.inputs, options),
                   typed.expected, tolerance);
  }
  const std::size_t outputs = typed.node().outputs.size();
  for (std::size_t i = 0; outputs > 1 && i < outputs; ++i) {
    SCOPED_TRACE("only output " + std::to_string(i) + " is read");
    if (!may_be_read_alone(typed.node(), i)) continue;
    RunOptions options = whole_gpu().run_options();
    options.only_output = static_cast<int>(i);
    KernelRequest request = plain_request(typed.graph, typed.node());
    for (std::size_t k = 0; k < outputs; ++k) request.outputs[k].present = k == i;
    if (kernel.refuse && kernel.refuse(request)) continue;
    const auto results = run_node(kernel, typed.graph, typed.node(), typed.inputs, options);
    expect_results({results[i]}, {typed.expected[i]}, tolerance);
  }
}

void check_broadcast(const Kernel& kernel, const TypedCase& typed, double tolerance) {
  SCOPED_TRACE("broadcast");
  std::vector<Layout> layouts;
  std::vector<HostTensor> inputs = typed.inputs;
  broadcast_first_axis(inputs, layouts);
  RunOptions options = whole_gpu().run_options();
  options.input_layouts = layouts;
  expect_results(run_node(kernel, typed.graph, typed.node(), inputs, options),
                 run_reference(typed.wide, in_types_of(typed.wide, inputs)), tolerance);
}

void expect_no_problem(const std::string& kernel) {
  EXPECT_EQ(whole_gpu().gpu->take_failure(), "") << kernel;
  std::size_t& known = whole_gpu().known;
  const std::vector<std::string> problems = whole_gpu().runtime->problems();
  for (; known < problems.size(); ++known) ADD_FAILURE() << kernel << ": " << problems[known];
  std::size_t& known_of_libraries = whole_gpu().known_of_libraries;
  std::vector<std::string> others = whole_gpu().libraries->lt.problems();
  for (const std::string& text : whole_gpu().libraries->dnn.problems()) others.push_back(text);
  if (others.size() == known_of_libraries) return;
  known_of_libraries = others.size();
  for (const std::string& text : others) ADD_FAILURE() << kernel << ": " << text;
}

bool takes(const Kernel& kernel, const Graph& graph) {
  if (kernel.op != graph.nodes[0].op->name) return false;
  return !kernel.refuse || !kernel.refuse(plain_request(graph, graph.nodes[0], whole_gpu().facts));
}

class CudaParityTest : public ::testing::TestWithParam<std::string> {
 public:
  static void TearDownTestSuite() { own_gpu().reset(); }

 protected:
  void check_all(DType computed) {
    for (const OperatorCase& c : cases()) {
      if (c.op != GetParam()) continue;
      SCOPED_TRACE("case " + c.name);
      try {
        check(c, computed);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
    whole_gpu().runtime->clear_calls();
  }

  void check_poisoned(DType computed) {
    for (const OperatorCase& c : cases()) {
      if (c.op != GetParam()) continue;
      SCOPED_TRACE("case " + c.name);
      try {
        check_poisoned(c, computed);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
    whole_gpu().runtime->clear_calls();
  }

  PoisonExceptions exceptions_;

 private:
  void check_poisoned(const OperatorCase& c, DType computed) {
    Graph graph;
    try {
      graph = case_graph(c, parity_operators(), computed);
    } catch (const Error&) {
      return;  // the operator has no such type
    }
    std::vector<const Kernel*> taking;
    for (const Kernel& kernel : whole_gpu().kernels) {
      if (takes(kernel, graph)) taking.push_back(&kernel);
    }
    if (taking.empty()) return;  // WhatHasNoKernelIsListed
    std::size_t turn = 0;
    const TypedCase typed(c, parity_operators(), computed);
    each_poisoned(c, typed, [&](const PoisonedRun& run) {
      SCOPED_TRACE(run.what + ", " + run.place);
      const LayoutVariant& variant = layout_variants[turn++ % std::size(layout_variants)];
      for (const Kernel* kernel : taking) {
        RunOptions options = whole_gpu().run_options();
        for (const HostTensor& x : run.inputs)
          options.input_layouts.push_back(variant.layout(x.shape()));
        for (const HostTensor& y : run.expected)
          options.output_layouts.push_back(variant.layout(y.shape()));
        const auto results = run_node(*kernel, typed.graph, typed.node(), run.inputs, options);
        for (const std::string& deviation :
             deviations(results, run.expected, tolerance_of(c, computed))) {
          const std::string line = c.op + " " + kernel->name + " " + run.what + ": " + deviation;
          EXPECT_TRUE(exceptions_.allows(line)) << line << " (" << variant.name << ")";
        }
      }
    });
  }

  void check(const OperatorCase& c, DType computed) {
    Graph graph;
    try {
      graph = case_graph(c, parity_operators(), computed);
    } catch (const Error&) {
      return;  // the operator has no such type
    }
    const bool is_taken = std::any_of(whole_gpu().kernels.begin(), whole_gpu().kernels.end(),
                                      [&](const Kernel& kernel) { return takes(kernel, graph); });
    if (!is_taken) return;  // WhatHasNoKernelIsListed
    const TypedCase typed(c, parity_operators(), computed);
    const double tolerance = tolerance_of(c, computed);
    for (const Kernel& kernel : whole_gpu().kernels) {
      if (!takes(kernel, graph)) continue;
      SCOPED_TRACE(kernel.name);
      check_layouts(kernel, typed, tolerance);
      if (!updates_in_place(*typed.node().op)) check_broadcast(kernel, typed, tolerance);
      expect_no_problem(kernel.name);
    }
  }
};

TEST_P(CudaParityTest, Float32) { check_all(DType::float32); }
TEST_P(CudaParityTest, Float16) { check_all(DType::float16); }
TEST_P(CudaParityTest, BFloat16) { check_all(DType::bfloat16); }

TEST_P(CudaParityTest, StaysPoisonedAsInTheReference) {
  for (const DType computed : {DType::float32, DType::float16, DType::bfloat16})
    check_poisoned(computed);
}

std::vector<std::string> operators_with_kernel() {
  std::set<std::string> names;
  for (const Kernel& kernel : WholeGpu().kernels) names.insert(kernel.op);
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaParityTest, ::testing::ValuesIn(operators_with_kernel()),
                         [](const auto& param) { return param.param; });

/// Whether the host has a kernel besides the reference: then the operator is worth one here, too.
bool is_fast_on_host(const Operator& op) {
  return std::any_of(cpu_list().begin(), cpu_list().end(), [&](const Kernel& kernel) {
    return kernel.op == op.name && !kernel.reference;
  });
}

/// Lines such as "TopK: no kernel" for operators that are fast on the host, "MatMul: vector" if no
/// kernel takes the case in float32, and "MatMul: no float16" if no kernel takes any case in that
/// type, although the reference or float32's kernels would.
std::set<std::string> without_kernel() {
  std::set<std::string> lines;
  for (const Operator& op : parity_operators().all()) {
    if (op.view != nullptr) continue;
    const bool any_kernel = std::any_of(whole_gpu().kernels.begin(), whole_gpu().kernels.end(),
                                        [&](const Kernel& kernel) { return kernel.op == op.name; });
    if (!any_kernel) {
      if (is_fast_on_host(op)) lines.insert(op.name + ": no kernel");
      continue;
    }
    for (const DType computed : {DType::float32, DType::float16, DType::bfloat16}) {
      bool any_case = false, any_taken = false;
      for (const OperatorCase& c : cases()) {
        if (c.op != op.name) continue;
        Graph graph;
        try {
          graph = case_graph(c, parity_operators(), computed);
        } catch (const Error&) {
          continue;
        }
        any_case = true;
        const bool is_taken =
            std::any_of(whole_gpu().kernels.begin(), whole_gpu().kernels.end(),
                        [&](const Kernel& kernel) { return takes(kernel, graph); });
        any_taken = any_taken || is_taken;
        if (computed == DType::float32 && !is_taken) lines.insert(op.name + ": " + c.name);
      }
      if (computed != DType::float32 && any_case && !any_taken)
        lines.insert(op.name + ": no " + std::string(name_of(computed)));
    }
  }
  return lines;
}

class CudaParity : public ::testing::Test {
 public:
  static void TearDownTestSuite() { own_gpu().reset(); }
};

// An operator or case that loses its kernel fails this test.
TEST_F(CudaParity, WhatHasNoKernelIsListed) {
  const auto text_of = [](const std::set<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  };
  EXPECT_EQ(text_of(without_kernel()), text_of(listed_gaps()))
      << "where that is meant, write it with its reason to " << listed_gaps_path;
}

TEST_F(CudaParity, ListsNoReference) {
  std::set<std::string> names;
  for (const Kernel& kernel : whole_gpu().kernels) {
    EXPECT_FALSE(kernel.reference) << kernel.name;
    const std::string family = kernel.name.substr(0, kernel.name.find('.'));
    EXPECT_TRUE(family == "cuda" || family == "cublas_lt" || family == "cudnn") << kernel.name;
    EXPECT_NE(parity_operators().find(kernel.op), nullptr) << kernel.name;
  }
}

}  // namespace
}  // namespace tandem::testing
