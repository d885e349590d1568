// The graph: flat vectors of nodes and values, addressed by typed ids. One type from import to
// lowering.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/attributes.h"
#include "engine/graph/host_tensor.h"
#include "engine/graph/state_derivation.h"
#include "engine/graph/state_shard.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/graph/types.h"

namespace tandem {

struct Operator;  // engine/operators/operator.h
class OperatorSet;

/// Valid inside one graph only; -1 means an absent optional input or output.
struct ValueId {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const ValueId&) const = default;
};
struct NodeId {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
  bool operator==(const NodeId&) const = default;
};

enum class ValueKind : std::uint8_t {
  input,     // fed before each step
  state,     // the value of a state at the start of a step (State::initial)
  constant,  // known before the run
  computed,  // made by a node
};

struct Value {
  std::string name;  // unique in the graph; the file's own name where it has one
  TensorType type;
  ValueKind kind = ValueKind::computed;
  NodeId producer;                             // computed values only
  std::int32_t output_index = 0;               // which output of the producer
  std::shared_ptr<const HostTensor> constant;  // constants only
};

enum class Phase : std::uint8_t { forward, backward, update };

struct Graph;

struct Node {
  COPIED_OUT_OF_LINE(Node);

  const Operator* op = nullptr;
  Attributes attributes;
  std::vector<ValueId> inputs;   // an absent optional one has index -1
  std::vector<ValueId> outputs;  // all outputs that the operator declares; unused ones exist too
  std::string path;              // the user's name for it; survives every rewrite
  Phase phase = Phase::forward;
  std::vector<std::string>
      origins;  // paths of the forward nodes it comes from; own path if forward
  std::shared_ptr<const Graph> body;  // for Fused and control flow; has the node's inputs
};

enum class StateKind : std::uint8_t {
  parameter,  // a float initializer of the file that reaches the loss
  buffer,     // running statistics
  optimizer,  // moments
  counter,    // step counters
};

/// Where the value of a state is kept between runs.
enum class HeldBy : std::uint8_t {
  checkpoint,  // the state is saved and restored
  model,       // never trained: the model file, with what parameters.init and load make of it;
               // checkpoints have only its hash
  teacher,     // a distillation's teacher: its own file; checkpoints have only its hash
};

/// Something that lives from step to step. `initial` is read during a step, `final` is what the one
/// update node writes into the same storage (equal to `initial` where nothing writes it).
struct State {
  COPIED_OUT_OF_LINE(State);

  std::string name;  // parameters and buffers: the file's initializer name; moments: "NAME/exp_avg"
  std::string path;  // "fc1:weight" for parameters; empty for others
  StateKind kind = StateKind::parameter;
  ValueId initial;
  ValueId final;
  bool trainable = false;
  std::string reason;               // why it is trainable or not, for people
  std::string parameter;            // optimizer state: the parameter it belongs to
  Derived derived;                  // what it holds of another state
  std::optional<StateShard> shard;  // where ranks shard it: what this rank keeps
  HostTensor start;                 // the value before the first step
  bool starts_at_zero = false;  // `start` holds zeros, which need not be written into fresh memory
  HeldBy held_by = HeldBy::checkpoint;

  /// The name of the state that this one is a `Kind` of; its own name where it is not one.
  template <class Kind>
  const std::string& source() const {
    const Kind* kind = derived.as<Kind>();
    return kind != nullptr ? kind->of : name;
  }
};

struct NamedValue {
  std::string name;
  ValueId value;
};

struct Graph {
  COPIED_OUT_OF_LINE(Graph);

  std::vector<Node> nodes;  // in an order where every producer precedes its consumers
  std::vector<Value> values;
  std::vector<NamedValue> inputs;   // fed values
  std::vector<NamedValue> outputs;  // results that someone reads: loss, logits, metrics
  std::vector<State> states;

  const Node& node(NodeId id) const { return nodes[id.index]; }
  Node& node(NodeId id) { return nodes[id.index]; }
  const Value& value(ValueId id) const { return values[id.index]; }
  Value& value(ValueId id) { return values[id.index]; }
  const TensorType& type(ValueId id) const { return values[id.index].type; }

  const NamedValue* find_input(std::string_view name) const;
  const NamedValue* find_output(std::string_view name) const;
  const State* find_state(std::string_view name) const;
  /// Any value by name, or -1.
  ValueId find_value(std::string_view name) const;
  bool is_constant(ValueId id) const { return value(id).kind == ValueKind::constant; }
};

/// readers[v] lists the nodes that read value v (each node once).
std::vector<std::vector<NodeId>> readers_of(const Graph& graph);

/// Throws Error (path, expected, got) on the first breach: ids in range, producers first, arity,
/// declared attributes present with their types, inferred types equal to recorded ones, each state
/// written at most once by an aliasing output, no reader of `initial` after its writer, unique
/// names.
void verify(const Graph& graph);

/// The graph as text, one node a line: `%y: float32[2, 3] = Add(%a, %b) {axis=1}  # path`.
std::string to_text(const Graph& graph);

}  // namespace tandem
