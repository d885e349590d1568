// A plan as text: queues with their instructions, buffers with offsets, the memory report.
#include <fmt/format.h>

#include "engine/operators/operator.h"
#include "engine/plan/collectives.h"
#include "engine/plan/plan.h"

namespace tandem {
namespace {

const char* name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::parameter:
      return "parameter";
    case BufferKind::state:
      return "state";
    case BufferKind::constant:
      return "constant";
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::gradient:
      return "gradient";
    case BufferKind::activation:
      return "activation";
    case BufferKind::workspace:
      break;
  }
  return "workspace";
}

std::string access_text(const Plan& plan, const Access& access) {
  const Buffer& buffer = plan.buffers[access.buffer];
  std::string text = buffer.name;
  if (access.begin != 0 || access.end != buffer.bytes)
    text += fmt::format("[{}:{}]", access.begin, access.end);
  return text;
}

std::string accesses(const Plan& plan, const Instruction& instruction, bool write) {
  std::string text;
  for (const Access& access : instruction.accesses) {
    if (access.write == write) text += (text.empty() ? "" : ", ") + access_text(plan, access);
  }
  return text;
}

std::string over_ranks(const Plan& plan, const Lowered& lowered, NodeId node) {
  const std::size_t calls = collective_calls(lowered, plan, node).size();
  return fmt::format("over {} ranks in {} call{}",
                     lowered.graph.node(node).attributes.integer("ranks"), calls,
                     calls == 1 ? "" : "s");
}

std::string line(const Plan& plan, const Lowered& lowered, const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::wait:
      return fmt::format("wait {}{}", instruction.event,
                         instruction.steps_back == 0   ? ""
                         : instruction.steps_back == 1 ? " of the step before"
                                                       : " of two steps before");
    case Instruction::Kind::record:
      return fmt::format("record {}", instruction.event);
    case Instruction::Kind::feed:
      return "feed " + plan.buffers[instruction.buffer].name;
    case Instruction::Kind::read:
      return "read " + plan.buffers[instruction.buffer].name;
    case Instruction::Kind::copy:
    case Instruction::Kind::collective:
    case Instruction::Kind::run:
      break;
  }
  const Node& node = lowered.graph.node(instruction.node);
  const Kernel* kernel = lowered.nodes[instruction.node.index].kernel;
  const std::string part =
      instruction.parts == 1
          ? ""
          : fmt::format(" part {} of {}", instruction.part + 1, instruction.parts);
  const bool is_collective = instruction.kind == Instruction::Kind::collective;
  const std::string how = is_collective       ? over_ranks(plan, lowered, instruction.node)
                          : kernel == nullptr ? "copies"
                                              : kernel->name;
  return fmt::format("{}{} {} ({}) -> {}  # {}", node.op->name, part, how,
                     accesses(plan, instruction, false), accesses(plan, instruction, true),
                     node.path);
}

}  // namespace

std::string to_text(const Plan& plan, const Lowered& lowered) {
  std::string text;
  for (const Queue& queue : plan.queues) {
    text += fmt::format("queue {}\n", queue.name);
    for (const Instruction& instruction : queue.instructions)
      text += "  " + line(plan, lowered, instruction) + "\n";
  }
  text += "buffers\n";
  for (const Buffer& buffer : plan.buffers) {
    text += fmt::format("  {} {}: {} bytes", name_of(buffer.kind), buffer.name, buffer.bytes);
    if (buffer.in_arena()) text += fmt::format(" at {}", buffer.offset);
    if (buffer.copies > 1) text += fmt::format(" and {} in turn", buffer.offset + buffer.stride);
    text += "\n";
  }
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = plan.memory[d];
    text += fmt::format(
        "memory of {}: peak {} bytes = arena {} (at least {}) + "
        "parameters {} + state {} + inputs, "
        "outputs and "
        "constants {}\n  most at {}: activations {}, gradients {}, "
        "workspace {}\n",
        lowered.devices[d]->name(), use.peak, use.arena, use.lower_bound, use.parameters, use.state,
        use.peak - use.arena - use.parameters - use.state, use.peak_at, use.activations,
        use.gradients, use.workspace);
  }
  text += fmt::format("estimated {:.3f} ms a step\n", plan.estimated_seconds * 1e3);
  return text;
}

}  // namespace tandem
