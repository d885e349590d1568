// The lowered graph: every node has a device and a kernel, every value a buffer and a layout.
#pragma once

#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/graph/graph.h"
#include "engine/graph/selector.h"
#include "engine/lower/placement.h"

namespace tandem {

struct LoweredValue {
  ValueId storage;  // the value whose buffer holds it; itself unless a view or an in-place result
  Layout layout;    // inside that buffer
  int device = 0;   // index into Lowered::devices
};

struct LoweredNode {
  int device = 0;
  const Kernel* kernel = nullptr;    // null: a view, a transfer or a collective
  std::vector<int> in_place;         // per output: input whose storage it overwrites, or -1
  std::vector<std::string> refused;  // kernels before the chosen one, with their reasons
  bool transfer = false;             // moves bytes from the device of its input to its own
  bool collective = false;           // over all ranks, by the communicator of its device

  bool is_view() const { return kernel == nullptr && !transfer && !collective; }  // no instruction
};

/// Where a state's bytes lie between steps, fixed by the first training program.
struct StateLayout {
  int device = 0;
  Layout layout;
};

struct Lowered {
  Graph graph;
  std::vector<Device*> devices;
  std::vector<LoweredValue> values;  // one per graph value
  std::vector<LoweredNode> nodes;    // one per graph node
  std::vector<StateLayout> states;   // one per graph state
  std::vector<std::string> notes;    // for people: reference kernels, reorders
};

/// The input, made by lowering, that is fed with what `input` will get in the next step.
inline std::string next_input(const std::string& input) { return input + ".next"; }

/// Begins the note that says why a table's rows are not fetched ahead though its rule asks for it.
inline std::string not_ahead_note(const std::string& table) {
  return table + ": rows of the next step are not fetched ahead: ";
}

struct LowerOptions {
  bool deterministic = true;
  DType compute = DType::float32;      // what products and convolutions compute in: may be 16 bits
  std::vector<Selector> keep_float32;  // paths of operators that stay float32 regardless
  /// Names of tables that are stored as bfloat16, with the lower 16 bits in a second state.
  std::vector<std::string> split_tables;
  /// Names of parameters that an update may write without refreshing a copy in 16 bits (a weight):
  /// they have no such copy in any program of a run, not even where nothing updates them.
  std::vector<std::string> without_weights;
  /// Whether tables whose rule asks for it fetch the next step's rows during this one; the caller
  /// then feeds the inputs that `next_input` names.
  bool rows_ahead = false;
  /// Where an update's operands cross between devices, copies and update run in ranges of at most
  /// this many bytes.
  std::size_t range_bytes = std::size_t{16} << 20;
  std::vector<std::string> disabled_passes;
  /// Layouts that State already has, by state name (from the first training program).
  std::vector<std::pair<std::string, Layout>> fixed_layouts;
};

/// The passes of lower_passes.inl, then layouts, kernels and results in place.
Lowered lower(const Graph& graph, const Placement& placement, const OperatorSet& operators,
              const std::vector<Device*>& devices, const LowerOptions& options);

/// What `disabled_passes` may name: passes, and the choices of layouts and of in-place results.
std::vector<std::string> optional_passes();

std::string to_text(const Lowered& lowered);

}  // namespace tandem
