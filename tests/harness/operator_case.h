// One test body for every operator: a case says inputs and attributes; the harness runs the forward
// on every kernel of every list in float (and other listed types) against the double reference,
// checks the gradient numerically in double (central differences), and repeats with strided,
// transposed and channels-last inputs. Also the completeness test's data.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/kernel.h"
#include "engine/graph/graph.h"
#include "engine/operators/operator.h"

namespace tandem::testing {

struct CaseInput {
  enum class Fill { uniform, positive, integers, booleans, distinct, values };
  Shape shape;
  DType dtype = DType::float32;  // float32 inputs also run as float64
  Fill fill =
      Fill::uniform;  // uniform: (-1, 1); positive: (0.5, 2); distinct: no two closer than 0.01
  double low = -1, high = 1;   // uniform range; integers: low <= i < high
  std::vector<double> values;  // Fill::values
  bool absent = false;         // optional input left out
  bool differentiable = true;  // float inputs: check its gradient numerically
  bool fixed = false;          // keeps its type where other float32 inputs run as float64
};

struct OperatorCase {
  std::string name;  // unique within the operator
  std::string op;
  std::vector<CaseInput> inputs;
  Attributes attributes;
  double tolerance = 1e-5;  // relative to the largest magnitude, float32 kernel against double
  double gradient_tolerance = 1e-6;  // double, central differences
  bool check_gradient = true;        // false needs a reason in `why`
  std::string why;
  // Expected output 0 from elsewhere (PyTorch, a paper), where the case has it.
  std::vector<double> expected;
  /// For Fused: the body for the case where float32 inputs have the given type.
  std::function<std::shared_ptr<const Graph>(const OperatorSet&, DType)> body;
};

/// All cases, from the tables that tests/operators/all_cases.inl lists.
std::vector<OperatorCase> all_cases();

/// One value for each input of the case, equal in each call; empty for an absent one. float32
/// inputs hold the same numbers where `computed` is float64, unless the input is `fixed`.
std::vector<HostTensor> case_inputs(const OperatorCase& operator_case, DType computed);

/// A graph of only this node, fed by inputs named "x0", "x1", ...; its outputs are "y0", "y1", ...
/// Inputs of rank 0 keep float32 where the operator requires it, and so do saved statistics of
/// 16-bit data. Throws Error where the types do not fit.
Graph case_graph(const OperatorCase& operator_case, const OperatorSet& operators, DType computed);

/// The reference kernels; and all kernels of the CPU, with the reference kernels last.
const KernelList& reference_list();
const KernelList& cpu_list();
/// This machine's facts for kernels.
const DeviceFacts& host_facts();

/// Memory for operands while a kernel runs, where it is not the host's.
class OperandMemory {
 public:
  virtual ~OperandMemory() = default;
  /// The address of a copy of these bytes, a multiple of 256; it lives until `clear`.
  virtual void* put(const void* bytes, std::size_t count) = 0;
  virtual void get(void* to, const void* from, std::size_t count) = 0;
  virtual void clear() = 0;
};

/// Whether kernels have to support a node of which only output `i` is read. Passes make the nodes
/// of tables such that all results are read.
bool may_be_read_alone(const Node& node, std::size_t i);

struct RunOptions {
  std::vector<Layout> input_layouts;   // for each input; row-major where missing
  std::vector<Layout> output_layouts;  // taken where the kernel proposes `any`
  int only_output = -1;  // all others are not read (except for those that alias inputs)
  ErrorWord* error = nullptr;
  const DeviceFacts* facts = nullptr;  // null: `host_facts`
  void* queue = nullptr;               // KernelArguments::queue
  std::function<void()> finish;        // called after `run`, before outputs are read
  OperandMemory* memory = nullptr;     // null: the host's
};

/// Runs one node on one kernel; returns all outputs as row-major tensors (empty where not read).
/// Inputs whose layout matches no proposal are copied into the first proposed one. Checks that
/// nothing outside the outputs and the workspace is written; with `memory`, that includes the
/// inputs. Throws std::runtime_error with the reason where the kernel refuses.
std::vector<HostTensor> run_node(const Kernel& kernel, const Graph& graph, const Node& node,
                                 const std::vector<HostTensor>& inputs, const RunOptions& options);
std::vector<HostTensor> run_node(const Kernel& kernel, const Graph& graph, const Node& node,
                                 const std::vector<HostTensor>& inputs,
                                 const std::vector<Layout>& input_layouts = {});

/// The request that `run_node` makes for row-major operands, to ask whether a kernel refuses.
KernelRequest plain_request(const Graph& graph, const Node& node,
                            const DeviceFacts& facts = host_facts());

/// Evaluates a whole graph node by node on reference kernels: inputs and states by name.
std::vector<HostTensor> evaluate(const Graph& graph,
                                 const std::vector<std::pair<std::string, HostTensor>>& feeds,
                                 const std::vector<ValueId>& wanted);

/// |a - b| <= tolerance * max(1, max|b|) element by element; returns the message of the worst
/// breach, or "".
std::string compare(const HostTensor& a, const HostTensor& b, double tolerance);

}  // namespace tandem::testing
