// A kernel: one way to compute one operator on one kind of device. Chosen from explicit lists, best
// first.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

/// First error of a step in one memory space; kernels never throw, they write it and clamp.
struct ErrorWord {
  enum Kind : std::int32_t { none = 0, index_out_of_range = 1, bad_label = 2, non_finite = 3 };
  std::atomic<std::int64_t> packed{0};  // kind << 32 | node index; 0 = none
  std::atomic<std::int64_t> value{0};

  void report(Kind kind, std::int32_t node, std::int64_t offending) {
    std::int64_t expected = 0;
    const std::int64_t wanted =
        (static_cast<std::int64_t>(kind) << 32) | static_cast<std::uint32_t>(node);
    if (packed.compare_exchange_strong(expected, wanted)) value.store(offending);
  }
};

/// What changes from step to step without being a tensor.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;         // from 1
  std::uint64_t micro_batch = 0;  // from 0
  /// The first sample that this rank computes, counted in the whole micro-batch of all ranks.
  std::uint64_t first_sample = 0;
  ErrorWord* error = nullptr;
};

struct KernelArguments {
  const void* const* inputs;  // null for an absent optional input; layout offset included
  void* const* outputs;       // null for an output that is not read and that the kernel may skip
  void* workspace;            // as many bytes as `prepare` asked for, 64-byte aligned
  const StepContext* context;
  void* queue = nullptr;  // the accelerator's own handle of the stream that runs it
};

struct Operand {
  TensorType type;
  Layout layout;
  bool present = true;                   // absent optional input; output that is not read
  const HostTensor* constant = nullptr;  // inputs known before the run
};

/// Facts that `refuse` may look at; filled by the device, or by hand in tests and stored profiles.
struct DeviceFacts {
  std::string kind = "cpu";           // "cpu", "cuda", "emulated"
  std::vector<std::string> features;  // "avx2", "avx512", "avx512_bf16", "amx"
  int threads = 1;                    // team size of the compute lane
  bool has(std::string_view feature) const;
};

struct KernelRequest {
  const Node* node = nullptr;    // op, attributes, body, path
  std::int32_t node_index = -1;  // in the lowered graph; for ErrorWord
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  const DeviceFacts* facts = nullptr;
  bool deterministic = true;

  const Attributes& attributes() const { return node->attributes; }
  bool is_present(std::size_t input) const {
    return input < inputs.size() && inputs[input].present;
  }
};

/// What a kernel wants of one operand's layout.
struct LayoutConstraint {
  enum class Kind : std::uint8_t {
    any,          // any strides, also 0 (broadcast); not opaque
    unit_stride,  // strided with at least one stride of 1, none of 0 on extents > 1
    dense,        // a permutation of row-major without holes; all `dense` operands share one
    row_major,
    channels_last,
    exact,  // `layout`
  };
  Kind kind = Kind::any;
  Layout layout;
};
bool satisfies(const LayoutConstraint& constraint, const Layout& layout, const Shape& shape);

struct Proposal {
  std::vector<LayoutConstraint> inputs;   // missing ones: row_major
  std::vector<LayoutConstraint> outputs;  // missing ones: row_major
  double seconds = 0;                     // 0 = unknown: the roofline decides
};

inline std::vector<Proposal> propose_row_major(const KernelRequest&) { return {Proposal{}}; }
/// Asks for strides of kind `any` for all operands.
inline std::vector<Proposal> propose_any_strides(const KernelRequest& request) {
  Proposal proposal;
  proposal.inputs.resize(request.inputs.size());
  proposal.outputs.resize(request.outputs.size());
  return {proposal};
}

/// Everything fixed before the run. `run` neither allocates, locks, throws nor looks anything up.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  virtual void run(const KernelArguments& arguments) noexcept = 0;
  std::size_t workspace_bytes = 0;
};

struct Kernel {
  std::string name;  // "onednn.conv", "reference.conv"
  std::string op;    // the operator's name
  /// Why this kernel cannot do it (types, attributes, instruction set; not layouts), or nothing.
  /// Pure.
  std::function<std::optional<std::string>(const KernelRequest&)> refuse;
  /// Layouts it can take, best first; at least one. Layouts in the request are what would come.
  /// Pure.
  std::function<std::vector<Proposal>(const KernelRequest&)> propose;
  /// Layouts in the request are final and satisfy one proposal.
  std::function<std::unique_ptr<PreparedKernel>(const KernelRequest&)> prepare;
  bool reference = false;
  bool deterministic = true;
};

using KernelList = std::vector<Kernel>;

/// The first kernel of the list for the operator that does not refuse; layouts do not matter.
/// `refusals` (optional) collects "kernel: reason" of those before it.
const Kernel* choose_kernel(const KernelList& kernels, const KernelRequest& request,
                            std::vector<std::string>* refusals = nullptr);

/// A prepared kernel that calls `f(arguments)`: the short way to write one.
template <class F>
std::unique_ptr<PreparedKernel> prepared(F f, std::size_t workspace_bytes = 0) {
  struct Body final : PreparedKernel {
    explicit Body(F g) : f_(std::move(g)) {}
    void run(const KernelArguments& arguments) noexcept override { f_(arguments); }
    F f_;
  };
  auto body = std::make_unique<Body>(std::move(f));
  body->workspace_bytes = workspace_bytes;
  return body;
}

}  // namespace tandem
