// The instructions of one step: feeds, kernels in program order (nodes that run in ranges
// interleaved range by range), reads.
#include <algorithm>
#include <numeric>

#include "engine/plan/planning_steps.h"
#include "engine/plan/ranges.h"

namespace tandem {
namespace {

const char* suffix_of(Queue::Role role) {
  switch (role) {
    case Queue::Role::copy_in:
      return ".in";
    case Queue::Role::copy_out:
      return ".out";
    case Queue::Role::collective:
      return ".ranks";
    case Queue::Role::feed:
      return ".feed";
    case Queue::Role::read:
      return ".read";
    case Queue::Role::compute:
      break;
  }
  return "";
}

// The device's queue of that role; made on first use.
int queue_of(const Lowered& lowered, Plan& plan, int device, Queue::Role role) {
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    if (plan.queues[q].device == device && plan.queues[q].role == role) return static_cast<int>(q);
  }
  plan.queues.push_back({lowered.devices[device]->name() + suffix_of(role), device, role, {}});
  return static_cast<int>(plan.queues.size()) - 1;
}

// A device has one queue for computing, two for copies, and one for operations over all ranks.
int queue_of_node(const Lowered& lowered, Plan& plan, std::size_t n) {
  const LoweredNode& node = lowered.nodes[n];
  if (node.collective) return queue_of(lowered, plan, node.device, Queue::Role::collective);
  if (!node.transfer) return queue_of(lowered, plan, node.device, Queue::Role::compute);
  if (node.device != 0) return queue_of(lowered, plan, node.device, Queue::Role::copy_in);
  const int from = lowered.values[lowered.graph.nodes[n].inputs[0].index].device;
  return queue_of(lowered, plan, from, Queue::Role::copy_out);
}

Instruction run_instruction(const Lowered& lowered, const Plan& plan,
                            const std::vector<char>& needed, NodeId id, int part) {
  const Node& node = lowered.graph.node(id);
  const NodeRanges ranges(lowered, id, plan.range_of[id.index]);
  Instruction instruction;
  instruction.node = id;
  instruction.part = part;
  instruction.parts = ranges.parts();
  if (lowered.nodes[id.index].transfer) instruction.kind = Instruction::Kind::copy;
  if (lowered.nodes[id.index].collective) instruction.kind = Instruction::Kind::collective;
  auto access = [&](ValueId value, bool write) {
    const int buffer = plan.buffer_of[value.index];
    const TensorType& type = lowered.graph.type(value);
    ByteRange range = bytes_of(lowered, value);
    if (ranges.cuts(type)) {
      const ElementRange elements = ranges.part(part);
      range.begin += static_cast<std::size_t>(elements.begin) * size_of(type.dtype);
      range.end = range.begin + static_cast<std::size_t>(elements.count) * size_of(type.dtype);
    }
    if (buffer >= 0 && range.begin < range.end) {
      instruction.accesses.push_back({buffer, range.begin, range.end, write});
    }
  };
  for (ValueId input : node.inputs) {
    if (input) access(input, false);
  }
  for (ValueId output : node.outputs) {
    if (output && needed[output.index]) access(output, true);
  }
  const int workspace = plan.workspace_of[id.index];
  if (workspace >= 0) {
    instruction.accesses.push_back({workspace, 0, plan.buffers[workspace].bytes, true});
  }
  return instruction;
}

bool conflict(const Instruction& a, const Instruction& b) {
  for (const Access& x : a.accesses) {
    for (const Access& y : b.accesses) {
      if (x.buffer == y.buffer && (x.write || y.write) && x.begin < y.end && y.begin < x.end)
        return true;
    }
  }
  return false;
}

// Whether a range of `after` may run before later ranges of `before`.
bool may_interleave(const std::vector<PlannedItem>& before, const std::vector<PlannedItem>& after) {
  if (before.size() < 2 || before.size() != after.size()) return false;
  for (std::size_t i = 0; i < after.size(); ++i) {
    for (std::size_t later = i + 1; later < before.size(); ++later) {
      if (conflict(before[later].instruction, after[i].instruction)) return false;
    }
  }
  return true;
}

// Orders neighbours that pass on ranges range by range: down, update, up, then the next range.
class Interleaver {
 public:
  explicit Interleaver(std::vector<PlannedItem>& items) : items_(items) {}

  void add(std::vector<PlannedItem> parts) {
    bool joins = false, may = true;
    for (const auto& before : run_) {
      joins = joins || conflict(before[0].instruction, parts[0].instruction);
      may = may && may_interleave(before, parts);
    }
    if (!joins || !may) flush();
    run_.push_back(std::move(parts));
  }
  void flush() {
    const std::size_t parts = run_.empty() ? 0 : run_[0].size();
    for (std::size_t i = 0; i < parts; ++i) {
      for (auto& node : run_) items_.push_back(std::move(node[i]));
    }
    run_.clear();
  }

 private:
  std::vector<PlannedItem>& items_;
  std::vector<std::vector<PlannedItem>> run_;  // nodes with equally many parts
};

}  // namespace

std::vector<PlannedItem> make_items(const Lowered& lowered, Plan& plan) {
  const Graph& graph = lowered.graph;
  const std::vector<char> needed = needed_values(lowered);
  std::vector<PlannedItem> kernels;
  std::vector<std::size_t> first_use(plan.buffers.size(), graph.nodes.size());
  queue_of(lowered, plan, 0, Queue::Role::compute);  // the host's lane comes first, always
  Interleaver interleaver(kernels);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (lowered.nodes[n].is_view()) continue;
    const NodeId id{static_cast<std::int32_t>(n)};
    std::vector<PlannedItem> parts(NodeRanges(lowered, id, plan.range_of[n]).parts());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].queue = queue_of_node(lowered, plan, n);
      parts[i].instruction = run_instruction(lowered, plan, needed, id, static_cast<int>(i));
      for (const Access& access : parts[i].instruction.accesses) {
        first_use[access.buffer] = std::min(first_use[access.buffer], n);
      }
    }
    interleaver.add(std::move(parts));
  }
  interleaver.flush();

  // Slots are filled in the order in which they are first read.
  auto transfer = [&](ValueId value, Instruction::Kind kind, Queue::Role role) {
    const int buffer = plan.buffer_of[value.index];
    const int device = plan.buffers[buffer].device;
    PlannedItem item;
    item.queue = queue_of(lowered, plan, device, role);
    item.instruction.kind = kind;
    item.instruction.buffer = buffer;
    item.instruction.accesses = {
        {buffer, 0, plan.buffers[buffer].bytes, kind == Instruction::Kind::feed}};
    return item;
  };
  std::vector<std::size_t> inputs(graph.inputs.size());
  std::iota(inputs.begin(), inputs.end(), 0);
  std::stable_sort(inputs.begin(), inputs.end(), [&](std::size_t a, std::size_t b) {
    return first_use[plan.buffer_of[graph.inputs[a].value.index]] <
           first_use[plan.buffer_of[graph.inputs[b].value.index]];
  });
  std::vector<PlannedItem> items;
  for (std::size_t i : inputs) {
    items.push_back(transfer(graph.inputs[i].value, Instruction::Kind::feed, Queue::Role::feed));
  }
  std::move(kernels.begin(), kernels.end(), std::back_inserter(items));
  for (const NamedValue& output : graph.outputs) {
    items.push_back(transfer(output.value, Instruction::Kind::read, Queue::Role::read));
  }
  std::vector<int> count(plan.queues.size(), 0);
  for (PlannedItem& item : items) item.position = count[item.queue]++;
  return items;
}

}  // namespace tandem
