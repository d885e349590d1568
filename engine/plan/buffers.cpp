// Buffers: one per value that owns its storage, one per workspace.
#include <algorithm>
#include <cassert>

#include "engine/operators/operator.h"
#include "engine/plan/planning_steps.h"

namespace tandem {
namespace {

BufferKind kind_of(const Lowered& lowered, ValueId id, const std::vector<char>& is_output,
                   const std::vector<char>& feeds_update) {
  const Graph& graph = lowered.graph;
  const Value& value = graph.value(id);
  switch (value.kind) {
    case ValueKind::input:
      return BufferKind::input;
    case ValueKind::constant:
      return BufferKind::constant;
    case ValueKind::state:
      for (const State& state : graph.states) {
        if (state.initial == id && state.kind == StateKind::parameter) return BufferKind::parameter;
      }
      return BufferKind::state;
    case ValueKind::computed:
      break;
  }
  if (is_output[id.index]) return BufferKind::output;
  const Node& producer = graph.node(value.producer);
  const bool summed = producer.op->role == Role::collective && producer.phase == Phase::update;
  const bool backward = producer.phase == Phase::backward || summed;
  return backward && feeds_update[id.index] ? BufferKind::gradient : BufferKind::activation;
}

// Enough for losses and norms, not for predictions.
constexpr std::size_t most_doubled_output = 4096;

void double_buffer(Buffer& buffer) {
  if (!buffer.in_arena()) return;
  buffer.copies = buffer.turns = 2;
  buffer.stride = aligned(buffer.bytes);
}

}  // namespace

std::vector<char> needed_values(const Lowered& lowered) {
  std::vector<char> needed(lowered.graph.values.size(), 0);
  for (const Node& node : lowered.graph.nodes) {
    for (ValueId input : node.inputs) {
      if (input) needed[input.index] = 1;
    }
  }
  for (const NamedValue& output : lowered.graph.outputs) needed[output.value.index] = 1;
  for (const State& state : lowered.graph.states) needed[state.final.index] = 1;
  return needed;
}

ByteRange bytes_of(const Lowered& lowered, ValueId id) {
  const TensorType& type = lowered.graph.type(id);
  const Layout& layout = lowered.values[id.index].layout;
  if (!layout.is_strided()) return {0, layout.opaque_bytes};
  std::int64_t low = layout.offset, high = layout.offset;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    if (type.shape[i] == 0) return {};
    const std::int64_t reach = (type.shape[i] - 1) * layout.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  assert(low >= 0);
  const std::size_t size = size_of(type.dtype);
  return {static_cast<std::size_t>(low) * size, static_cast<std::size_t>(high + 1) * size};
}

void make_buffers(const Lowered& lowered, const std::vector<std::size_t>& workspace_bytes,
                  Plan& plan) {
  const Graph& graph = lowered.graph;
  const std::vector<char> needed = needed_values(lowered);
  std::vector<char> is_output(graph.values.size(), 0), feeds_update(graph.values.size(), 0);
  std::vector<std::size_t> bytes(graph.values.size(), 0);
  std::vector<char> used(graph.values.size(), 0);
  for (const NamedValue& output : graph.outputs) {
    is_output[lowered.values[output.value.index].storage.index] = 1;
  }
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::update) continue;
    for (ValueId input : node.inputs) {
      if (input) feeds_update[lowered.values[input.index].storage.index] = 1;
    }
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ValueId id{static_cast<std::int32_t>(v)};
    const ValueId storage = lowered.values[v].storage;
    if (needed[v] || graph.values[v].kind != ValueKind::computed) used[storage.index] = 1;
    if (needed[v] || storage == id) {
      bytes[storage.index] = std::max(bytes[storage.index], bytes_of(lowered, id).end);
    }
  }
  plan.buffer_of.assign(graph.values.size(), -1);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ValueId id{static_cast<std::int32_t>(v)};
    if (!(lowered.values[v].storage == id) || !used[v]) continue;
    Buffer buffer;
    buffer.name = graph.values[v].name;
    buffer.kind = kind_of(lowered, id, is_output, feeds_update);
    buffer.device = lowered.values[v].device;
    buffer.bytes = bytes[v];
    buffer.storage = id;
    plan.buffer_of[v] = static_cast<int>(plan.buffers.size());
    plan.buffers.push_back(std::move(buffer));
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    plan.buffer_of[v] = plan.buffer_of[lowered.values[v].storage.index];
  }
  plan.workspace_of.assign(graph.nodes.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (workspace_bytes[n] == 0) continue;
    Buffer buffer;
    buffer.name = graph.nodes[n].path + "/workspace";
    buffer.kind = BufferKind::workspace;
    buffer.device = lowered.nodes[n].device;
    buffer.bytes = workspace_bytes[n];
    plan.workspace_of[n] = static_cast<int>(plan.buffers.size());
    plan.buffers.push_back(std::move(buffer));
  }
}

void double_inputs(const Lowered& lowered, Plan& plan) {
  const Graph& graph = lowered.graph;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!lowered.nodes[n].transfer || lowered.nodes[n].device == 0) continue;
    const ValueId x = graph.nodes[n].inputs[0], y = graph.nodes[n].outputs[0];
    if (!(lowered.values[y.index].storage == y)) continue;
    if (graph.value(lowered.values[x.index].storage).kind != ValueKind::input) continue;
    Buffer& buffer = plan.buffers[plan.buffer_of[y.index]];
    double_buffer(buffer);
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!lowered.nodes[n].transfer || lowered.nodes[n].device != 0) continue;
    const ValueId x = graph.nodes[n].inputs[0], y = graph.nodes[n].outputs[0];
    const int from = plan.buffer_of[x.index], to = plan.buffer_of[y.index];
    if (from < 0 || to < 0 || plan.buffers[to].kind != BufferKind::output) continue;
    if (plan.buffers[from].bytes <= most_doubled_output) double_buffer(plan.buffers[from]);
  }
}

}  // namespace tandem
