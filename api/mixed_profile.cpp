#include "api/mixed_profile.h"

#include <map>
#include <set>

namespace tandem::api {
namespace {

// The instructions that leave a span, in the order of launching.
std::vector<const Instruction*> spanned(const Plan& plan) {
  std::vector<const Instruction*> result;
  for (const Launch& launch : plan.launches) {
    const Instruction& instruction = plan.queues[launch.queue].instructions[launch.index];
    if (instruction.kind != Instruction::Kind::wait &&
        instruction.kind != Instruction::Kind::record) {
      result.push_back(&instruction);
    }
  }
  return result;
}

}  // namespace

std::size_t trace_capacity(const Program& program, int steps) {
  return spanned(program.plan()).size() * static_cast<std::size_t>(steps) * 2 + 1024;
}

MixedProfile profile_mixed(const Program& program, const OrderChecker& monitor, int steps) {
  MixedProfile profile;
  const std::vector<TraceSpan> trace = monitor.trace();
  const std::vector<const Instruction*> instructions = spanned(program.plan());
  const bool aligned = trace.size() == instructions.size() * static_cast<std::size_t>(steps);
  if (aligned) profile.node_seconds.assign(program.lowered().graph.nodes.size(), 0);
  std::map<int, double> busy;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceSpan& span = trace[i];
    const double seconds = span.real_end - span.real_start;
    busy[span.lane] += seconds;
    profile.bytes += static_cast<double>(span.bytes) / steps;
    if (aligned && instructions[i % instructions.size()]->node)
      profile.node_seconds[instructions[i % instructions.size()]->node.index] += seconds;
    nlohmann::ordered_json event{
        {"name", span.name},           {"ph", "X"},           {"pid", 1}, {"tid", span.lane},
        {"ts", span.real_start * 1e6}, {"dur", seconds * 1e6}};
    if (span.bytes > 0) event["args"] = {{"bytes", span.bytes}};
    profile.events.push_back(std::move(event));
  }
  std::set<std::string> works;  // names of the queues that compute or copy
  for (const Queue& queue : program.plan().queues) {
    if (queue.role != Queue::Role::feed && queue.role != Queue::Role::read)
      works.insert(queue.name);
  }
  std::map<std::string, double> by_name;  // several programs have a lane of the same queue each
  for (const auto& [lane, seconds] : busy) {
    const std::string name = monitor.lane_name(lane);
    profile.events.push_back({{"name", "thread_name"},
                              {"ph", "M"},
                              {"pid", 1},
                              {"tid", lane},
                              {"args", {{"name", name}}}});
    if (works.contains(name)) by_name[name] += seconds * 1e3 / steps;
  }
  for (const auto& [name, ms] : by_name) profile.queues.push_back({name, ms});
  return profile;
}

}  // namespace tandem::api
