// The plan: instruction lists per queue, buffers with offsets, waits. A loop body: step after step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"

namespace tandem {

enum class BufferKind : std::uint8_t {
  parameter,
  state,
  constant,
  input,
  output,
  gradient,
  activation,
  workspace
};

/// A byte range that instructions touch. Persistent ones (parameters, states, constants) live in
/// State or in the program, input and output slots in rings; the others share the arena of a
/// device.
struct Buffer {
  std::string name;  // the name of the value that owns the storage, or "PATH/workspace"
  BufferKind kind = BufferKind::activation;
  int device = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;  // in the arena (gradient, activation, workspace)
  int copies = 1;          // 2: steps use two places in turn; one is filled while one is read
  std::size_t stride = 0;  // bytes from one copy to the next
  /// Steps after which the same bytes are used again: as many as there are copies, or places of a
  /// slot that steps use in turn.
  int turns = 1;
  ValueId storage;  // -1 for workspaces
  bool in_arena() const {
    return kind == BufferKind::gradient || kind == BufferKind::activation ||
           kind == BufferKind::workspace;
  }
};

struct Access {
  int buffer = 0;
  std::size_t begin = 0, end = 0;  // bytes in the buffer
  bool write = false;
};

struct Instruction {
  enum class Kind : std::uint8_t {
    run,         // a node's kernel
    copy,        // a Transfer node: bytes between devices
    collective,  // a node over all ranks
    feed,        // the loader fills an input slot
    read,        // the host reads an output slot
    record,      // event
    wait,        // for an event, of this step or of one of the two before
  };
  Kind kind = Kind::run;
  NodeId node;                   // run, copy, collective
  int part = 0, parts = 1;       // run, copy: which of the node's ranges of elements
  int buffer = -1;               // feed, read: the slot
  int event = -1;                // record, wait
  int steps_back = 0;            // wait: 0 for the event of this step, 1 for the step before, ...
  std::vector<Access> accesses;  // all but record and wait
};

struct Queue {
  enum class Role : std::uint8_t {
    compute,
    copy_in,     // from the host
    copy_out,    // to the host
    collective,  // over all ranks; runs in parallel to computing, on the host too
    feed,        // the loader fills input slots
    read,        // the host reads output slots
  };
  std::string name;  // the device's, with ".in", ".out", ".ranks", ".feed" or ".read"
  int device = 0;
  Role role = Role::compute;
  std::vector<Instruction> instructions;
};

struct MemoryUse {
  std::size_t parameters = 0, gradients = 0, state = 0, activations = 0, workspace = 0;
  std::size_t peak = 0;  // the arena plus persistent bytes
  std::size_t arena = 0;
  std::size_t lower_bound = 0;  // most bytes live at once
  std::string peak_at;          // path of the node where that is

  /// The rest of the peak: inputs, outputs, constants and gaps.
  std::size_t others() const {
    return peak - parameters - state - gradients - activations - workspace;
  }
};

/// An instruction: its queue, and its place there.
struct Launch {
  int queue = 0;
  int index = 0;
};

struct Plan {
  std::vector<Queue> queues;
  std::vector<Launch> launches;  // all instructions, as one thread enqueues them
  std::vector<Buffer> buffers;
  std::vector<int> buffer_of;     // per value of the lowered graph: its storage's buffer, or -1
  std::vector<int> workspace_of;  // per node: its workspace buffer, or -1
  std::vector<std::int64_t> range_of;  // per node: elements of a range; 0: it runs whole (ranges.h)
  std::vector<MemoryUse> memory;       // per device
  int events = 0;
  double estimated_seconds = 0;
};

struct PlanOptions {
  std::vector<std::int64_t> ranges = {};  // what `split_ranges` gives; empty: nodes run whole
  /// What a device copies from an input slot goes to two places in turn, so that the next step's
  /// input is copied while this step computes. So do the few bytes that it copies to an output
  /// slot, so that the next step need not wait for their copy.
  bool double_inputs = true;
  /// How many places steps use in turn for each input and output slot, where an accelerator takes
  /// part: with 2 the next step is launched before the host has read this one's outputs.
  int slot_turns = 1;
};

/// `workspace_bytes`: per node of the lowered graph, as the prepared kernels ask.
Plan make_plan(const Lowered& lowered, const std::vector<std::size_t>& workspace_bytes,
               PlanOptions options = {});

/// Proves that conflicting accesses are ordered, over consecutive steps, and that arena buffers
/// overlap only where all uses of one precede the first write of the other. Returns what is wrong.
std::vector<std::string> verify(const Plan& plan, const Lowered& lowered);

std::string to_text(const Plan& plan, const Lowered& lowered);

}  // namespace tandem
