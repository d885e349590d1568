// Runs one node on the GPU's reductions over the fake runtime, in the three float types, and
// compares with the reference in double.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/cuda/support/fake_gpu.h"

namespace tandem::testing {

struct ReductionGpu : FakeGpu {
  /// `multiprocessors` decides on how many blocks and parts there are; 0: an H100's.
  explicit ReductionGpu(int multiprocessors = 0);

  /// The first kernel for the node; null where all refuse.
  const Kernel* kernel_for(const Graph& graph) const;

  KernelList kernels;
};

struct ReducedInput {
  HostTensor numbers;            // float32, or of its own type; row-major
  std::optional<Layout> layout;  // how the kernel gets it
  bool statistic = false;        // float32 whatever the others are
  bool absent = false;
};

/// Uniform numbers, the same for the same start.
HostTensor some_numbers(Shape shape, unsigned start = 1, double low = -1, double high = 1);
/// Uniform integers of any type, low <= i < high.
HostTensor some_integers(Shape shape, DType dtype, std::int64_t low, std::int64_t high,
                         unsigned start = 1);
ReducedInput no_input();

struct ReductionCheck {
  std::string op;
  std::vector<ReducedInput> inputs;
  Attributes attributes = {};
  std::vector<Layout> output_layouts = {};  // where the kernel takes any
  double tolerance = 1e-5;  // of float32 results, of the largest magnitude, at least of 1
  bool only_first_output = false;
  std::vector<DType> types = {DType::float32, DType::float16, DType::bfloat16};
};

/// Adds a test failure where kernel and reference differ, a rule of CUDA is broken, or a second run
/// gives other bits; on a small GPU and on a large one.
void check_reduction(const ReductionCheck& check);

/// One node, its inputs of these tensors' types.
Graph reduction_graph(const std::string& op, const std::vector<HostTensor>& inputs,
                      const Attributes& attributes);

}  // namespace tandem::testing
