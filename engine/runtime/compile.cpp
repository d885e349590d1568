#include "engine/runtime/compile.h"

#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/lower/kernel_choice.h"
#include "engine/plan/plan_parts.h"

namespace tandem {
namespace {

std::vector<std::unique_ptr<PreparedKernel>> prepare_kernels(const Lowered& lowered,
                                                             bool deterministic) {
  const Graph& graph = lowered.graph;
  const std::vector<char> needed = needed_values(lowered);
  std::vector<std::unique_ptr<PreparedKernel>> kernels(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (lowered.nodes[n].kernel == nullptr) continue;
    const NodeId id{static_cast<std::int32_t>(n)};
    const Node& node = graph.nodes[n];
    std::vector<Layout> in, out;
    std::vector<bool> read;
    for (ValueId value : node.inputs)
      in.push_back(value ? lowered.values[value.index].layout : Layout{});
    for (ValueId value : node.outputs) {
      out.push_back(lowered.values[value.index].layout);
      read.push_back(needed[value.index] != 0);
    }
    Device& device = *lowered.devices[lowered.nodes[n].device];
    kernels[n] = lowered.nodes[n].kernel->prepare(
        make_request(graph, id, in, out, read, device, deterministic));
    assert(kernels[n]);
  }
  return kernels;
}

// The plan counts one slot of each ring.
void count_slots(const Lowered& lowered, const ProgramOptions& options, Plan& plan) {
  const auto add = [&](ValueId value, int slots) {
    const Buffer& buffer = plan.buffers[plan.buffer_of[value.index]];
    plan.memory[buffer.device].peak +=
        slot_bytes(buffer) * static_cast<std::size_t>(std::max(slots, 1)) - buffer.bytes;
  };
  for (const NamedValue& input : lowered.graph.inputs) add(input.value, options.input_slots);
  for (const NamedValue& output : lowered.graph.outputs) add(output.value, options.output_slots);
}

}  // namespace

std::size_t slot_bytes(const Buffer& buffer) {
  return aligned(std::max<std::size_t>(buffer.bytes, 1));
}

CompiledProgram compile_program(const Graph& graph, const Placement& placement,
                                const OperatorSet& operators, const std::vector<Device*>& devices,
                                const ProgramOptions& options) {
  CompiledProgram compiled;
  compiled.lowered = lower(graph, placement, operators, devices, options.lower);
  compiled.kernels = prepare_kernels(compiled.lowered, options.lower.deterministic);
  std::vector<std::size_t> workspace_bytes;
  for (const auto& kernel : compiled.kernels)
    workspace_bytes.push_back(kernel ? kernel->workspace_bytes : 0);
  compiled.plan = make_plan(compiled.lowered, workspace_bytes);
  const std::vector<std::string> wrong = verify(compiled.plan, compiled.lowered);
  if (!wrong.empty()) {
    Diagnostic d;
    d.message = "the plan is not free of races (please report this): " + wrong.front();
    throw Error(ErrorKind::runtime, std::move(d));
  }
  count_slots(compiled.lowered, options, compiled.plan);
  if (options.accept) options.accept(compiled.plan);
  return compiled;
}

}  // namespace tandem
