// The instructions of one step: feeds, kernels in program order, reads.
#include <algorithm>
#include <numeric>

#include "engine/plan/plan_parts.h"

namespace tandem {
namespace {

const char* suffix_of(Queue::Role role) {
  switch (role) {
    case Queue::Role::copy_in:
      return ".in";
    case Queue::Role::copy_out:
      return ".out";
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

// A device computes in one queue and copies in two.
int queue_of_node(const Lowered& lowered, Plan& plan, std::size_t n) {
  const LoweredNode& node = lowered.nodes[n];
  if (!node.transfer) return queue_of(lowered, plan, node.device, Queue::Role::compute);
  if (node.device != 0) return queue_of(lowered, plan, node.device, Queue::Role::copy_in);
  const int from = lowered.values[lowered.graph.nodes[n].inputs[0].index].device;
  return queue_of(lowered, plan, from, Queue::Role::copy_out);
}

Instruction run_instruction(const Lowered& lowered, const Plan& plan,
                            const std::vector<char>& needed, NodeId id) {
  const Node& node = lowered.graph.node(id);
  Instruction instruction;
  instruction.node = id;
  if (lowered.nodes[id.index].transfer) instruction.kind = Instruction::Kind::copy;
  auto access = [&](ValueId value, bool write) {
    const int buffer = plan.buffer_of[value.index];
    const ByteRange range = bytes_of(lowered, value);
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

}  // namespace

std::vector<PlannedItem> make_items(const Lowered& lowered, Plan& plan) {
  const Graph& graph = lowered.graph;
  const std::vector<char> needed = needed_values(lowered);
  std::vector<PlannedItem> kernels;
  std::vector<std::size_t> first_use(plan.buffers.size(), graph.nodes.size());
  queue_of(lowered, plan, 0, Queue::Role::compute);  // the host's lane comes first, always
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (lowered.nodes[n].is_view()) continue;
    PlannedItem item;
    item.queue = queue_of_node(lowered, plan, n);
    item.instruction = run_instruction(lowered, plan, needed, NodeId{static_cast<std::int32_t>(n)});
    for (const Access& access : item.instruction.accesses) {
      first_use[access.buffer] = std::min(first_use[access.buffer], n);
    }
    kernels.push_back(std::move(item));
  }

  // A step starts with the slot that is read first.
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
