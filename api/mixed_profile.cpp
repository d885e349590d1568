// Times of queues and copies: spans are measured; how long a queue was held up follows from the
// spans of those that it waited for, as in the simulation.
#include "api/mixed_profile.h"

#include <algorithm>
#include <map>
#include <set>

namespace tandem::api {
namespace {

/// Seconds of a step by queue and instruction: what kernels and copies take, how long waits hold
/// their queue up.
using StepSeconds = std::vector<std::vector<double>>;

bool leaves_span(const Instruction& instruction) {
  return instruction.kind != Instruction::Kind::wait &&
         instruction.kind != Instruction::Kind::record;
}

bool works(const Queue& queue) {
  return queue.role != Queue::Role::feed && queue.role != Queue::Role::read;
}

StepSeconds zeros(const Plan& plan) {
  StepSeconds seconds;
  for (const Queue& queue : plan.queues) seconds.emplace_back(queue.instructions.size(), 0.0);
  return seconds;
}

/// Per event: the instruction before its record.
std::vector<Launch> recorded_by(const Plan& plan) {
  std::vector<Launch> result(plan.events);
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    Launch last{static_cast<int>(q), -1};
    for (std::size_t i = 0; i < plan.queues[q].instructions.size(); ++i) {
      const Instruction& instruction = plan.queues[q].instructions[i];
      if (leaves_span(instruction)) last.index = static_cast<int>(i);
      if (instruction.kind == Instruction::Kind::record) result[instruction.event] = last;
    }
  }
  return result;
}

/// Means over all steps but the first, whose waits for the step before are not in the trace.
StepSeconds measured_seconds(const Plan& plan, const std::vector<TraceSpan>& trace, int steps) {
  const std::vector<Launch> launches = spanned_launches(plan);
  const std::vector<Launch> recorders = recorded_by(plan);
  StepSeconds seconds = zeros(plan);
  std::vector<std::vector<std::size_t>> number;  // of each instruction's span in its step
  for (const Queue& queue : plan.queues) number.emplace_back(queue.instructions.size(), 0);
  for (std::size_t i = 0; i < launches.size(); ++i)
    number[launches[i].queue][launches[i].index] = i;
  const auto span = [&](const Launch& launch, int step) -> const TraceSpan& {
    return trace[launches.size() * static_cast<std::size_t>(step) +
                 number[launch.queue][launch.index]];
  };
  const int first = steps > 1 ? 1 : 0;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    double now = 0;  // the queue is free
    for (int step = 0; step < steps; ++step) {
      const std::vector<Instruction>& list = plan.queues[q].instructions;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Launch launch{static_cast<int>(q), static_cast<int>(i)};
        double length = 0;
        if (leaves_span(list[i])) {
          length = span(launch, step).real_end - span(launch, step).real_start;
          now = span(launch, step).real_end;
        } else if (list[i].kind == Instruction::Kind::wait) {
          const int of = step - list[i].steps_back;
          if (of < 0 || now == 0) continue;
          length = std::max(0.0, span(recorders[list[i].event], of).real_end - now);
          now += length;
        }
        if (step >= first) seconds[q][i] += length / (steps - first);
      }
    }
  }
  return seconds;
}

StepSeconds simulated_seconds(const Plan& plan, const Simulation& simulation) {
  StepSeconds seconds = zeros(plan);
  for (const SimulatedSpan& span : simulation.spans)
    seconds[span.queue][span.index] = span.end - span.start;
  for (const SimulatedWait& wait : simulation.waits) seconds[wait.queue][wait.index] = wait.seconds;
  return seconds;
}

std::vector<QueueTime> queue_times(const Plan& plan, const StepSeconds& seconds) {
  std::vector<QueueTime> times;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    if (!works(plan.queues[q])) continue;
    QueueTime& time = times.emplace_back();
    time.name = plan.queues[q].name;
    for (std::size_t i = 0; i < seconds[q].size(); ++i) {
      const bool spans = leaves_span(plan.queues[q].instructions[i]);
      (spans ? time.busy_ms : time.waiting_ms) += seconds[q][i] * 1e3;
    }
  }
  return times;
}

/// By the copies' nodes.
std::map<std::int32_t, CopyTime> copy_times(const Plan& plan, const StepSeconds& seconds) {
  const std::vector<Launch> recorders = recorded_by(plan);
  StepSeconds waited = zeros(plan);  // for each copy, by all computing queues
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    if (plan.queues[q].role != Queue::Role::compute) continue;
    for (std::size_t i = 0; i < seconds[q].size(); ++i) {
      const Instruction& instruction = plan.queues[q].instructions[i];
      if (instruction.kind != Instruction::Kind::wait) continue;
      const Launch& by = recorders[instruction.event];
      if (by.index >= 0) waited[by.queue][by.index] += seconds[q][i];
    }
  }
  std::map<std::int32_t, CopyTime> times;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    for (std::size_t i = 0; i < seconds[q].size(); ++i) {
      const Instruction& instruction = plan.queues[q].instructions[i];
      if (instruction.kind != Instruction::Kind::copy) continue;
      times[instruction.node.index] +=
          {seconds[q][i] * 1e3, std::min(seconds[q][i], waited[q][i]) * 1e3, waited[q][i] * 1e3};
    }
  }
  return times;
}

}  // namespace

CopyTime& CopyTime::operator+=(const CopyTime& other) {
  copying_ms += other.copying_ms;
  exposed_ms += other.exposed_ms;
  waiting_ms += other.waiting_ms;
  return *this;
}

std::vector<Launch> spanned_launches(const Plan& plan) {
  std::vector<Launch> result;
  for (const Launch& launch : plan.launches) {
    if (leaves_span(plan.queues[launch.queue].instructions[launch.index])) result.push_back(launch);
  }
  return result;
}

std::size_t trace_capacity(const Program& program, int steps) {
  return spanned_launches(program.plan()).size() * static_cast<std::size_t>(steps) * 2 + 1024;
}

MixedProfile profile_mixed(const Program& program, const OrderChecker& monitor, int steps,
                           const std::vector<DeviceProfile>& profiles) {
  const Plan& plan = program.plan();
  const Lowered& lowered = program.lowered();
  const std::vector<TraceSpan> trace = monitor.trace();
  const std::vector<Launch> launches = spanned_launches(plan);
  MixedProfile profile;
  profile.whole = trace.size() == launches.size() * static_cast<std::size_t>(steps);
  profile.events = trace_events(program, monitor, trace, profile.whole ? steps : 0);
  std::set<std::string> working;
  for (const Queue& queue : plan.queues) {
    if (works(queue)) working.insert(queue.name);
  }
  std::map<std::string, double> busy;  // several programs have a lane of the same queue each
  for (const TraceSpan& span : trace) {
    const std::string name = monitor.lane_name(span.lane);
    if (working.contains(name)) busy[name] += (span.real_end - span.real_start) * 1e3 / steps;
    profile.bytes += static_cast<double>(span.bytes);
  }
  profile.bytes /= steps;
  if (!profile.whole) {
    for (const auto& [name, ms] : busy) profile.queues.push_back({name, ms, 0});
    return profile;
  }
  profile.node_seconds.assign(lowered.graph.nodes.size(), 0);
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const Launch& launch = launches[i % launches.size()];
    const NodeId node = plan.queues[launch.queue].instructions[launch.index].node;
    if (node) profile.node_seconds[node.index] += trace[i].real_end - trace[i].real_start;
  }
  const StepSeconds measured = measured_seconds(plan, trace, steps);
  const StepSeconds predicted = simulated_seconds(plan, simulate(plan, lowered, profiles));
  profile.queues = queue_times(plan, measured);
  profile.predicted = queue_times(plan, predicted);
  const auto measured_copies = copy_times(plan, measured);
  const auto predicted_copies = copy_times(plan, predicted);
  for (Crossing& crossing : crossings_of(lowered, plan)) {
    const std::int32_t node = crossing.node.index;
    profile.copies.push_back(
        {std::move(crossing), measured_copies.at(node), predicted_copies.at(node)});
  }
  return profile;
}

}  // namespace tandem::api
