#include "api/timing/trace_slices.h"

#include <set>

#include "engine/operators/operator.h"
#include "placement/report/placement_report.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

const char* category_of(const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::copy:
      return "copy";
    case Instruction::Kind::collective:
      return "ranks";
    case Instruction::Kind::feed:
      return "feed";
    case Instruction::Kind::read:
      return "read";
    default:
      return "kernel";
  }
}

/// The name that devices get when the instruction is launched; for kernels, followed by the
/// operator.
std::string slice_name(const Lowered& lowered, const tandem::Plan& plan,
                       const Instruction& instruction) {
  if (!instruction.node) return plan.buffers[instruction.buffer].name;
  const Node& node = lowered.graph.node(instruction.node);
  if (instruction.kind == Instruction::Kind::run) return node.path + " " + node.op->name;
  if (instruction.kind == Instruction::Kind::collective) return node.path;
  return lowered.graph.value(node.inputs[0]).name;
}

}  // namespace

int track_of(const Queue& queue) {
  constexpr int roles = static_cast<int>(Queue::Role::read) + 1;
  return marks_track + 1 + queue.device * roles + static_cast<int>(queue.role);
}

Json track_event(int process, int track, const std::string& name) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", process},
          {"tid", track},
          {"args", {{"name", name}}}};
}

Json slice_event(int process, const Lowered& lowered, const tandem::Plan& plan,
                 const Launch& launch, const LaunchTime& time) {
  const Queue& queue = plan.queues[launch.queue];
  const Instruction& instruction = queue.instructions[launch.index];
  Json event{{"name", slice_name(lowered, plan, instruction)},
             {"cat", category_of(instruction)},
             {"ph", "X"},
             {"pid", process},
             {"tid", track_of(queue)},
             {"ts", time.start * trace_microseconds},
             {"dur", (time.end - time.start) * trace_microseconds}};
  if (time.bytes > 0) event["args"]["bytes"] = time.bytes;
  if (!instruction.node) return event;
  const Node& node = lowered.graph.node(instruction.node);
  if (instruction.kind == Instruction::Kind::run) {
    event["args"]["op"] = node.op->name;
    event["args"]["kernel"] = lowered.nodes[instruction.node.index].kernel->name;
  }
  event["args"]["path"] = node.path;
  event["args"]["phase"] = phase_name(node.phase);
  if (instruction.parts > 1) event["args"]["part"] = instruction.part;
  return event;
}

Json trace_slices(const TracedSteps& traced, const LaunchTimes& times, int process) {
  Json events = Json::array();
  std::set<int> named;
  for (const TracedRun& run : traced.runs()) {
    const TracedProgram& program = traced.programs()[run.program];
    const tandem::Plan& plan = program.program->plan();
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const std::optional<LaunchTime>& time = times[run.begin + i];
      if (!time) continue;
      const Queue& queue = plan.queues[program.launches[i].queue];
      if (named.insert(track_of(queue)).second)
        events.push_back(track_event(process, track_of(queue), queue.name));
      events.push_back(
          slice_event(process, program.program->lowered(), plan, program.launches[i], *time));
    }
  }
  return events;
}

}  // namespace tandem::api
