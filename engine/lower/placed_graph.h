// A training graph with a place for each node and state: what the passes before layouts read and
// write.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/lower/lowered.h"
#include "engine/operators/operator.h"

namespace tandem {

constexpr int host = 0;  // the device where inputs are fed and outputs are read

struct PlacedGraph {
  Graph graph;                      // devices are indices into LowerContext::devices
  std::vector<PlacedNode> nodes;    // one per node of the graph
  std::vector<PlacedState> states;  // one per state of the graph; fed inputs lie on device 0
  std::vector<std::string> notes;   // for people
};

/// The id of the node in place n.
inline NodeId node_id(std::size_t n) { return NodeId{static_cast<std::int32_t>(n)}; }

/// The graph that the first pass gets.
PlacedGraph placed_graph(const Graph& graph, const Placement& placement);

struct LowerContext {
  const OperatorSet& operators;
  const std::vector<Device*>& devices;
  const LowerOptions& options;
};

/// Edits a placed graph in place; `finish` sorts it and drops what is dead. Ids stay valid until
/// then.
class PlacedEdit {
 public:
  PlacedEdit(PlacedGraph placed, const LowerContext& context);

  Graph& graph() { return placed_.graph; }
  const LowerContext& context() const { return context_; }
  const PlacedNode& place(NodeId node) const { return placed_.nodes[node.index]; }
  PlacedState& place(std::size_t state) { return placed_.states[state]; }
  int device(NodeId node) const { return place(node).device; }
  void set_device(NodeId node, int device) { placed_.nodes[node.index].device = device; }
  int state_device(std::size_t state) const { return placed_.states[state].state; }
  /// The nodes that are there now; those that `add` makes meanwhile are not among them.
  std::vector<NodeId> nodes() const;
  /// Readers at the start, each node once; not kept up to date by edits.
  const std::vector<NodeId>& readers(ValueId value) const { return values_[value.index].readers; }
  /// True for outputs of the graph and final values of states.
  bool is_kept(ValueId value) const { return values_[value.index].kept; }
  /// The only node that reads `value`, where nothing else needs it; else -1.
  NodeId only_reader(ValueId value) const;

  /// A node of operator `op` that takes over the place, path, phase and origins of `like`; defaults
  /// of missing attributes are filled, types are inferred. Its outputs are new values.
  NodeId add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes, NodeId like,
             const std::vector<NodeId>& merged = {}, std::shared_ptr<const Graph> body = nullptr);
  /// A value that no node makes: a constant, or the initial value of a state for `add_state`.
  ValueId add_value(Value value);
  void add_state(State state, int device, int lookahead = default_lookahead);
  /// A value that is fed, as the last input of the graph.
  ValueId add_input(const std::string& name, const TensorType& type);
  void add_note(std::string note) { placed_.notes.push_back(std::move(note)); }
  /// The position that a node prefers in the order: node n of the original graph has key n.
  void set_key(NodeId node, double key) { keys_[node.index] = key; }
  /// Makes every reader of `old` read `by`, which takes over its name.
  void replace(ValueId old, ValueId by);
  /// True where the device of `node` has a kernel of its own (no reference) for it.
  bool has_fast_kernel(NodeId node) const;
  /// Takes back nodes that `add` made last, none of which is read yet.
  void drop(NodeId node);
  /// Whether `node`, which `add` made last, has a fast kernel; drops it where it has none.
  bool stays_if_fast(NodeId node);

  PlacedGraph finish();

 private:
  PlacedGraph placed_;
  const LowerContext& context_;
  struct EditedValue {
    std::vector<NodeId> readers;
    bool kept = false;
    ValueId replaced;  // the value that replaces it, or -1
  };
  std::vector<EditedValue> values_;
  std::vector<double> keys_;  // per node: the position that it prefers
};

/// Sorts nodes by producers, readers of a state before its writer, then `keys`; drops what reaches
/// neither an output nor a state, and renumbers.
PlacedGraph tidy(PlacedGraph placed, const std::vector<double>& keys);

/// Which inputs the outputs overwrite: per output an input index or -1; grouped updates included.
std::vector<int> overwritten_inputs(const Node& node);

/// Views that lowering turns into layouts: operators with a `view` function.
inline bool is_view(const Node& node) { return node.op->view != nullptr; }

/// `value`, or what it is a view of.
ValueId behind_views(const Graph& graph, ValueId value);

/// Whether this update can also output the new master in 16 bits.
bool makes_weight(const Node& writer);

/// Splits the weight of parameter `state` from its master: `device` and `dtype` are where it lies
/// and its type. All readers but updates read it afterwards, and the last writer of the master
/// refreshes it.
ValueId add_weight(PlacedEdit& edit, std::size_t state, int device, DType dtype);

// Each pass returns a new graph.
#define TANDEM_LOWER_PASS(name) PlacedGraph name(PlacedGraph placed, const LowerContext& context);
#define TANDEM_REQUIRED_PASS(name) TANDEM_LOWER_PASS(name)
#include "engine/lower/lower_passes.inl"

struct LowerPass {
  std::string name;
  PlacedGraph (*run)(PlacedGraph placed, const LowerContext& context);
  bool required = false;  // cannot be switched off
};
/// In the order in which they run.
const std::vector<LowerPass>& lower_passes();

/// Layouts, views, kernels and copies; the last step before in-place results.
Lowered assign_layouts(const PlacedGraph& placed, const LowerContext& context);
void reuse_inputs(Lowered& lowered);

}  // namespace tandem
