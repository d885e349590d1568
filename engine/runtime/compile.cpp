#include "engine/runtime/compile.h"

#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/plan/planning_steps.h"
#include "engine/plan/ranges.h"

namespace tandem {

DEFINE_COPIES(ProgramOptions);

namespace {

void prepare_kernels(CompiledProgram& compiled, const std::vector<std::int64_t>& lengths,
                     bool deterministic) {
  const Lowered& lowered = compiled.lowered;
  const std::vector<char> needed = needed_values(lowered);
  compiled.kernels.resize(lowered.graph.nodes.size());
  compiled.last_kernels.resize(lowered.graph.nodes.size());
  for (std::size_t n = 0; n < lowered.graph.nodes.size(); ++n) {
    if (lowered.nodes[n].kernel == nullptr) continue;
    const NodeId id{static_cast<std::int32_t>(n)};
    const auto prepared_for = [&](std::int64_t elements) {
      auto kernel = lowered.nodes[n].kernel->prepare(
          request_of(lowered, id, needed, deterministic, elements));
      assert(kernel);
      return kernel;
    };
    compiled.kernels[n] = prepared_for(lengths[n]);
    const NodeRanges ranges(lowered, id, lengths[n]);
    const std::int64_t last = ranges.part(ranges.parts() - 1).count;
    if (ranges.is_split() && last != lengths[n]) compiled.last_kernels[n] = prepared_for(last);
  }
}

// Adds the other slots of each ring, of which the plan counts one.
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
  std::vector<std::int64_t> lengths =
      split_ranges(compiled.lowered, options.lower.range_bytes, options.lower.deterministic);
  prepare_kernels(compiled, lengths, options.lower.deterministic);
  std::vector<std::size_t> workspace_bytes(compiled.kernels.size(), 0);
  for (const auto* kernels : {&compiled.kernels, &compiled.last_kernels}) {
    for (std::size_t n = 0; n < kernels->size(); ++n) {
      if ((*kernels)[n] == nullptr) continue;
      workspace_bytes[n] = std::max(workspace_bytes[n], (*kernels)[n]->workspace_bytes);
    }
  }
  // Two steps may run at a time where each slot has a place for both.
  const int slot_turns = std::min({options.input_slots, options.output_slots, 2});
  compiled.plan = make_plan(compiled.lowered, workspace_bytes,
                            {std::move(lengths), options.double_inputs, std::max(slot_turns, 1)});
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
