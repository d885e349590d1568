// Runs one node on a CPU kernel in several instruction sets, numbers of threads and layouts, and
// compares with the reference kernel.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/cpu_kernels.h"

namespace tandem::testing {

struct NodeInput {
  HostTensor tensor;             // row-major
  std::optional<Layout> layout;  // the kernel's layout
  bool absent = false;
  bool constant = false;  // known before the run
};

/// Uniform numbers, the same for the same seed.
HostTensor random_tensor(Shape shape, unsigned seed = 1, double low = -1, double high = 1);
HostTensor random_integers(Shape shape, DType dtype, std::int64_t low, std::int64_t high,
                           unsigned seed = 1);
NodeInput absent_input();
/// Row-major strides with `gap` unused elements after each run of the last axis.
Layout with_gaps(const Shape& shape, std::int64_t gap);

struct NodeCheck {
  std::string op;
  std::vector<NodeInput> inputs;
  Attributes attributes = {};
  std::shared_ptr<const Graph> body = nullptr;
  std::vector<std::optional<Layout>> output_layouts = {};
  std::vector<int> unread = {};  // outputs that are not read
  double tolerance = 1e-5;       // times max(1, largest magnitude)
  bool in_place = false;         // outputs overwrite the inputs that the operator's aliases name
  bool same_of_any_threads = false;  // any number of threads gives the same bits
  std::vector<std::string> features = {"avx512", "avx2", "baseline"};
};

/// Adds a test failure if kernel and reference differ.
void check(const NodeCheck& node);

/// The kernel's refusal; "" if it takes the node.
std::string refusal(const NodeCheck& node);

}  // namespace tandem::testing
