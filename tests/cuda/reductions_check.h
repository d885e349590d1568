// Runs one node on the GPU's reductions over the fake runtime, in the three float types, and
// compares with the double reference.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

struct ReductionGpu : FakeGpu {
  /// `multiprocessors` determines the number of blocks and parts; 0: as on an H100.
  explicit ReductionGpu(int multiprocessors = 0);

  /// The first kernel that takes the node; null if none does.
  const Kernel* kernel_for(const Graph& graph) const;

  KernelList kernels;
};

struct ReducedInput {
  HostTensor numbers;            // float32, or integers; row-major
  std::optional<Layout> layout;  // the kernel's layout
  bool statistic = false;        // float32 whatever the others are
  bool absent = false;
};

/// Uniform numbers, the same for the same `start`.
HostTensor some_numbers(Shape shape, unsigned start = 1, double low = -1, double high = 1);
/// Uniform integers of any type, low <= i < high.
HostTensor some_integers(Shape shape, DType dtype, std::int64_t low, std::int64_t high,
                         unsigned start = 1);
ReducedInput no_input();

struct ReductionCheck {
  std::string op;
  std::vector<ReducedInput> inputs;
  Attributes attributes = {};
  std::vector<Layout> output_layouts = {};  // if the kernel takes any
  /// For float32 results, relative to the largest magnitude, or to 1 if that is larger.
  double tolerance = 1e-5;
  bool only_first_output = false;
  std::vector<DType> types = {DType::float32, DType::float16, DType::bfloat16};
};

/// Adds a test failure if kernel and reference differ, a rule of CUDA is broken, or a second run
/// gives other bits. Runs on a small GPU and on a large one.
void check_reduction(const ReductionCheck& check);

/// A graph of one node with inputs of these tensors' types.
Graph reduction_graph(const std::string& op, const std::vector<HostTensor>& inputs,
                      const Attributes& attributes);

}  // namespace tandem::testing
