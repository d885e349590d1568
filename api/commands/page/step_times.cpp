#include "api/commands/page/step_times.h"

#include <algorithm>

#include "placement/report/placement_report.h"
#include "placement/report/plan_record.h"

namespace tandem::api {
namespace {

constexpr std::size_t most_points = 400;

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

PageJson memory_over_step(const PlannedStep& step, const ResolvedPolicy& resolved) {
  const PlannedMicroBatch& last = step.micro_batches.back();
  const Lowered& lowered = last.program.lowered;
  const tandem::Plan& plan = last.program.plan;
  // When each instruction of each queue begins; what takes no time begins with what follows.
  std::vector<std::vector<double>> begins;
  for (const Queue& queue : plan.queues) begins.emplace_back(queue.instructions.size(), -1.0);
  for (const SimulatedSpan& span : last.simulation.spans)
    begins[static_cast<std::size_t>(span.queue)][static_cast<std::size_t>(span.index)] = span.start;
  std::vector<double> at(plan.launches.size());
  double latest = 0;
  for (std::size_t launch = 0; launch < at.size(); ++launch) {
    const Launch& where = plan.launches[launch];
    latest = std::max(
        latest,
        begins[static_cast<std::size_t>(where.queue)][static_cast<std::size_t>(where.index)]);
    at[launch] = latest;
  }
  PageJson devices = PageJson::array();
  for (std::size_t d = 0; d < plan.memory.size(); ++d) {
    const MemoryUse& use = step.memory[d];
    // Inputs, outputs and constants; others() has the gaps of the arena, too.
    const std::size_t slots = use.peak - use.arena - use.parameters - use.state;
    PageJson json{
        {"device", resolved.devices[d].name},
        {"persistent", {{"parameters", use.parameters}, {"state", use.state}, {"others", slots}}},
        {"peak", use.peak},
        {"limit", step.limited[d] ? PageJson(step.limits[d]) : PageJson()}};
    for (const char* column : {"at_ms", "gradients", "activations", "workspace", "paths"})
      json[column] = PageJson::array();
    for (const LiveBytes& live : live_bytes(lowered, plan, static_cast<int>(d), most_points)) {
      json["at_ms"].push_back(at[live.launch] * 1e3);
      json["gradients"].push_back(live.gradients);
      json["activations"].push_back(live.activations);
      json["workspace"].push_back(live.workspace);
      json["paths"].push_back(live.path);
    }
    devices.push_back(std::move(json));
  }
  return devices;
}

}  // namespace tandem::api
