#include "api/commands/page/step_times.h"

#include "placement/report/placement_report.h"

namespace tandem::api {
namespace {

const char* role_name(Queue::Role role) {
  switch (role) {
    case Queue::Role::compute:
      return "compute";
    case Queue::Role::copy_in:
      return "copy_in";
    case Queue::Role::copy_out:
      return "copy_out";
    case Queue::Role::collective:
      return "collective";
    default:
      return "";  // feeding and reading take no time
  }
}

std::size_t bytes_of(const Instruction& instruction) {
  std::size_t bytes = 0;
  for (const Access& access : instruction.accesses)
    if (access.write) bytes += access.end - access.begin;
  return bytes;
}

}  // namespace

PageJson timeline_of(const PlannedStep& step, const ResolvedPolicy& resolved) {
  const PlannedMicroBatch& last = step.micro_batches.back();
  const Lowered& lowered = last.program.lowered;
  const tandem::Plan& plan = last.program.plan;
  PageJson queues = PageJson::array();
  std::vector<int> place(plan.queues.size(), -1);
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    const Queue& queue = plan.queues[q];
    if (*role_name(queue.role) == '\0') continue;
    const SimulatedQueue& simulated = last.simulation.queues[q];
    place[q] = static_cast<int>(queues.size());
    queues.push_back({{"name", queue.name},
                      {"device", resolved.device_name(queue.device)},
                      {"role", role_name(queue.role)},
                      {"busy_ms", simulated.busy * 1e3},
                      {"waiting_ms", simulated.waiting * 1e3}});
    for (const char* column : {"start_ms", "end_ms", "exposed_ms", "bytes", "phase", "op", "path"})
      queues.back()[column] = PageJson::array();
  }
  for (const SimulatedSpan& span : last.simulation.spans) {
    const auto q = static_cast<std::size_t>(span.queue);
    const Instruction& instruction =
        plan.queues[q].instructions[static_cast<std::size_t>(span.index)];
    if (place[q] < 0 || !instruction.node) continue;
    const Node& node = lowered.graph.node(instruction.node);
    const bool runs = instruction.kind == Instruction::Kind::run;
    PageJson& queue = queues[static_cast<std::size_t>(place[q])];
    queue["start_ms"].push_back(span.start * 1e3);
    queue["end_ms"].push_back(span.end * 1e3);
    queue["exposed_ms"].push_back(span.exposed * 1e3);
    queue["bytes"].push_back(runs ? 0 : bytes_of(instruction));
    queue["phase"].push_back(phase_name(node.phase));
    queue["op"].push_back(instruction.kind == Instruction::Kind::copy ? "copy" : node.op->name);
    queue["path"].push_back(node.path);
  }
  return {{"step_ms", last.simulation.seconds * 1e3},
          {"times", last.times},
          {"part",
           step.micro_batches.size() == 1 && last.times == 1 ? "whole step" : "last micro-batch"},
          {"queues", queues}};
}

}  // namespace tandem::api
