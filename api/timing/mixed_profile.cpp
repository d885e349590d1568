// Computes times of queues and copies: spans are measured; the time that a queue was held up
// follows from the spans that it waited for, as in the simulation.
#include "api/timing/mixed_profile.h"

#include <algorithm>
#include <map>
#include <set>

namespace tandem::api {
namespace {

/// Seconds of a step by queue and instruction: the time of kernels and copies, and the time that
/// waits hold up their queue.
using StepSeconds = std::vector<std::vector<double>>;

bool leaves_span(const Instruction& instruction) {
  return instruction.kind != Instruction::Kind::wait &&
         instruction.kind != Instruction::Kind::record;
}

bool works(const Queue& queue) {
  return queue.role != Queue::Role::feed && queue.role != Queue::Role::read;
}

StepSeconds zeros(const tandem::Plan& plan) {
  StepSeconds seconds;
  for (const Queue& queue : plan.queues) seconds.emplace_back(queue.instructions.size(), 0.0);
  return seconds;
}

/// By event: the instruction before its record.
std::vector<Launch> recorded_by(const tandem::Plan& plan) {
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

/// For one program: means over all steps except the first, since what it waits for in the previous
/// step is not in the trace.
StepSeconds measured_seconds(const TracedSteps& traced, std::size_t number,
                             const std::vector<TraceSpan>& trace) {
  const TracedProgram& program = traced.programs()[number];
  const tandem::Plan& plan = program.program->plan();
  const std::vector<Launch> recorders = recorded_by(plan);
  StepSeconds seconds = zeros(plan);
  std::vector<std::vector<std::size_t>> place;  // index of each instruction's span within its run
  for (const Queue& queue : plan.queues) place.emplace_back(queue.instructions.size(), 0);
  for (std::size_t i = 0; i < program.launches.size(); ++i)
    place[program.launches[i].queue][program.launches[i].index] = i;
  struct Run {
    std::size_t begin;
    int step;
    double free_from;  // when all earlier work has ended
  };
  std::vector<Run> runs;
  double ended = 0;
  std::size_t next = 0;
  for (const TracedRun& run : traced.runs()) {
    if (run.program != number) continue;
    for (; next < run.begin; ++next) ended = std::max(ended, trace[next].real_end);
    runs.push_back({run.begin, run.step, run.follows ? 0 : ended});
  }
  const auto span = [&](const Launch& launch, std::size_t run) -> const TraceSpan& {
    return trace[runs[run].begin + place[launch.queue][launch.index]];
  };
  const int first = traced.steps() > 1 ? 1 : 0;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    double now = 0;  // when the queue is free
    for (std::size_t run = 0; run < runs.size(); ++run) {
      now = std::max(now, runs[run].free_from);
      const std::vector<Instruction>& list = plan.queues[q].instructions;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Launch launch{static_cast<int>(q), static_cast<int>(i)};
        double length = 0;
        if (leaves_span(list[i])) {
          length = span(launch, run).real_end - span(launch, run).real_start;
          now = std::max(now, span(launch, run).real_end);  // copies of no rows end when launched
        } else if (list[i].kind == Instruction::Kind::wait) {
          const auto back = static_cast<std::size_t>(list[i].steps_back);
          if (back > run || now == 0) continue;
          length = std::max(0.0, span(recorders[list[i].event], run - back).real_end - now);
          now += length;
        }
        if (runs[run].step >= first) seconds[q][i] += length / (traced.steps() - first);
      }
    }
  }
  return seconds;
}

/// For one program: the simulated seconds of all its runs in a step.
StepSeconds simulated_seconds(const TracedProgram& program,
                              const std::vector<DeviceProfile>& profiles) {
  const tandem::Plan& plan = program.program->plan();
  const Simulation simulation = simulate(plan, program.program->lowered(), profiles);
  StepSeconds seconds = zeros(plan);
  for (const SimulatedSpan& span : simulation.spans)
    seconds[span.queue][span.index] = (span.end - span.start) * program.times;
  for (const SimulatedWait& wait : simulation.waits)
    seconds[wait.queue][wait.index] = wait.seconds * program.times;
  return seconds;
}

/// Adds the seconds to the queue times of the same name.
void add_queue_times(const tandem::Plan& plan, const StepSeconds& seconds,
                     std::vector<QueueTime>& times) {
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    if (!works(plan.queues[q])) continue;
    const std::string& name = plan.queues[q].name;
    const auto known = std::find_if(times.begin(), times.end(),
                                    [&](const QueueTime& time) { return time.name == name; });
    QueueTime& time = known != times.end() ? *known : times.emplace_back(QueueTime{name, 0, 0});
    for (std::size_t i = 0; i < seconds[q].size(); ++i) {
      const bool spans = leaves_span(plan.queues[q].instructions[i]);
      (spans ? time.busy_ms : time.waiting_ms) += seconds[q][i] * 1e3;
    }
  }
}

/// By node of the copy.
std::map<std::int32_t, CopyTime> copy_times(const tandem::Plan& plan, const StepSeconds& seconds) {
  const std::vector<Launch> recorders = recorded_by(plan);
  StepSeconds waited = zeros(plan);  // by copy: seconds that all computing queues waited for it
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

std::size_t trace_capacity(const TracedSteps& traced) { return traced.spans() * 2 + 1024; }

std::vector<std::vector<double>> traced_node_seconds(const TracedSteps& traced,
                                                     const std::vector<TraceSpan>& trace) {
  std::vector<std::vector<double>> seconds;
  for (const TracedProgram& program : traced.programs())
    seconds.emplace_back(program.program->lowered().graph.nodes.size(), 0.0);
  if (trace.size() != traced.spans()) return seconds;
  for (const TracedRun& run : traced.runs()) {
    const TracedProgram& program = traced.programs()[run.program];
    const tandem::Plan& plan = program.program->plan();
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const Launch& launch = program.launches[i];
      const NodeId node = plan.queues[launch.queue].instructions[launch.index].node;
      const TraceSpan& span = trace[run.begin + i];
      if (node) seconds[run.program][node.index] += span.real_end - span.real_start;
    }
  }
  return seconds;
}

MixedProfile profile_mixed(const TracedSteps& traced, const OrderChecker& monitor,
                           const std::vector<DeviceProfile>& profiles) {
  const std::vector<TraceSpan> trace = monitor.trace();
  MixedProfile profile;
  profile.whole = trace.size() == traced.spans();
  profile.events = trace_events(traced, monitor, trace);
  std::set<std::string> working;
  for (const TracedProgram& program : traced.programs()) {
    for (const Queue& queue : program.program->plan().queues) {
      if (works(queue)) working.insert(queue.name);
    }
  }
  // Each program has its own lane for a queue, so these are summed.
  std::map<std::string, double> busy;
  for (const TraceSpan& span : trace) {
    const std::string name = monitor.lane_name(span.lane);
    const double ms = (span.real_end - span.real_start) * 1e3;
    if (working.contains(name)) busy[name] += ms / traced.steps();
    profile.bytes += static_cast<double>(span.bytes);
  }
  profile.bytes /= traced.steps();
  profile.node_seconds = traced_node_seconds(traced, trace);
  if (!profile.whole) {
    for (const auto& [name, ms] : busy) profile.queues.push_back({name, ms, 0});
    return profile;
  }
  for (std::size_t number = 0; number < traced.programs().size(); ++number) {
    const TracedProgram& program = traced.programs()[number];
    const tandem::Plan& plan = program.program->plan();
    const StepSeconds measured = measured_seconds(traced, number, trace);
    const StepSeconds predicted = simulated_seconds(program, profiles);
    add_queue_times(plan, measured, profile.queues);
    add_queue_times(plan, predicted, profile.predicted);
    const auto measured_copies = copy_times(plan, measured);
    const auto predicted_copies = copy_times(plan, predicted);
    for (Crossing& crossing : crossings_of(program.program->lowered(), plan)) {
      const std::int32_t node = crossing.node.index;
      crossing.times = program.times;
      profile.copies.push_back(
          {std::move(crossing), measured_copies.at(node), predicted_copies.at(node)});
    }
  }
  return profile;
}

}  // namespace tandem::api
