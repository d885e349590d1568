#include "engine/plan/collectives.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/operators/collectives/collective.h"
#include "engine/plan/planning_steps.h"

namespace tandem {
namespace {

// The buffer that operand i fills, and in which it is reduced in place; else -1.
int own_buffer(const Lowered& lowered, const Plan& plan, const Node& node, std::size_t i) {
  const ValueId x = node.inputs[i], y = node.outputs[i];
  const int buffer = plan.buffer_of[x.index];
  if (buffer < 0 || plan.buffer_of[y.index] != buffer) return -1;
  const Buffer& b = plan.buffers[buffer];
  const ByteRange bytes = bytes_of(lowered, x);
  const bool whole = bytes.begin == 0 && bytes.end == b.bytes && b.bytes > 0;
  return whole && b.in_arena() && b.copies == 1 ? buffer : -1;
}

bool follows(const Plan& plan, int first, int second) {
  const Buffer &a = plan.buffers[first], &b = plan.buffers[second];
  return a.device == b.device && b.offset == a.offset + aligned(a.bytes);
}

bool is_reduction(const Lowered& lowered, std::size_t n) {
  return lowered.nodes[n].collective &&
         collective_kind(lowered.graph.nodes[n]) == CollectiveKind::all_reduce;
}

}  // namespace

std::vector<std::vector<int>> side_by_side(const Lowered& lowered, const Plan& plan) {
  std::vector<std::vector<int>> groups;
  std::vector<char> taken(plan.buffers.size(), 0);
  for (std::size_t n = 0; n < lowered.graph.nodes.size(); ++n) {
    if (!is_reduction(lowered, n)) continue;
    const Node& node = lowered.graph.nodes[n];
    std::vector<int> group;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const int buffer = own_buffer(lowered, plan, node, i);
      if (buffer < 0 || taken[buffer]) continue;
      taken[buffer] = 1;
      group.push_back(buffer);
    }
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

namespace {

CollectiveCall::Place place_of(const Lowered& lowered, const Plan& plan, ValueId value) {
  return {plan.buffer_of[value.index], bytes_of(lowered, value).begin};
}

// All operands as one call.
std::vector<CollectiveCall> parts_call(const Lowered& lowered, const Plan& plan, const Node& node,
                                       CollectiveKind kind) {
  CollectiveCall call;
  const std::vector<ValueId> given = given_values(node);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ValueId x = given[i], y = node.outputs[i];
    std::int64_t part = lowered.graph.type(x).elements(), whole = lowered.graph.type(y).elements();
    if (kind == CollectiveKind::reduce_scatter) std::swap(part, whole);
    call.dtype = lowered.graph.type(x).dtype;
    if (part == 0) continue;
    call.operands.push_back({place_of(lowered, plan, x), place_of(lowered, plan, y), part, whole});
  }
  if (call.operands.empty()) return {};
  return {std::move(call)};
}

// Ranks may have room for different numbers of rows, so that even a rank without rows takes part.
CollectiveCall exchange_call(const Lowered& lowered, const Plan& plan, const Node& node) {
  const TensorType &x = lowered.graph.type(node.inputs[0]),
                   &y = lowered.graph.type(node.outputs[0]);
  CollectiveCall call;
  call.operands = {{place_of(lowered, plan, node.inputs[0]),
                    place_of(lowered, plan, node.outputs[0]),
                    element_count(Shape(x.shape.begin() + 1, x.shape.end()))}};
  call.dtype = x.dtype;
  call.sent = place_of(lowered, plan, node.inputs[1]);
  call.received = place_of(lowered, plan, node.inputs[2]);
  call.from_rows = x.shape[0];
  call.to_rows = y.shape[0];
  return call;
}

}  // namespace

std::vector<CollectiveCall> collective_calls(const Lowered& lowered, const Plan& plan, NodeId id) {
  const Node& node = lowered.graph.node(id);
  const CollectiveKind kind = collective_kind(node);
  if (kind == CollectiveKind::exchange_rows) return {exchange_call(lowered, plan, node)};
  if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter)
    return parts_call(lowered, plan, node, kind);
  const std::int64_t share =
      kind == CollectiveKind::all_to_all ? node.attributes.integer("ranks") : 1;
  std::vector<CollectiveCall> calls;
  int last = -1;  // the buffer that the last call ends with, where another may join it
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId x = node.inputs[i], y = node.outputs[i];
    const std::int64_t elements = lowered.graph.type(x).elements() / share;
    if (elements == 0) continue;
    const DType dtype = lowered.graph.type(x).dtype;
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    const int own = kind == CollectiveKind::all_reduce ? own_buffer(lowered, plan, node, i) : -1;
    if (own >= 0 && last >= 0 && follows(plan, last, own)) {
      CollectiveCall::Operand& joint = calls.back().operands[0];
      const std::size_t begin = plan.buffers[joint.from.buffer].offset;
      joint.elements =
          static_cast<std::int64_t>(plan.buffers[own].offset - begin) / size + elements;
    } else {
      CollectiveCall& call = calls.emplace_back();
      call.operands = {{place_of(lowered, plan, x), place_of(lowered, plan, y), elements}};
      call.dtype = dtype;
    }
    last = own;
  }
  return calls;
}

std::string collective_order(const Lowered& lowered, const Plan& plan) {
  std::string text;
  for (const Launch& launch : plan.launches) {
    const Queue& queue = plan.queues[launch.queue];
    const Instruction& instruction = queue.instructions[launch.index];
    if (instruction.kind != Instruction::Kind::collective) continue;
    const Node& node = lowered.graph.node(instruction.node);
    for (const CollectiveCall& call : collective_calls(lowered, plan, instruction.node)) {
      text += fmt::format("{} {}", node.op->name, node.path);
      for (const CollectiveCall::Operand& operand : call.operands)
        text += fmt::format(" {}/{}", operand.elements, operand.whole);
      text += fmt::format(" of {} on {}\n", name_of(call.dtype), queue.name);
    }
  }
  return text;
}

}  // namespace tandem
