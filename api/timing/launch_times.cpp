#include "api/timing/launch_times.h"

#include <algorithm>

namespace tandem::api {
namespace {

const Instruction& launched_by(const TracedProgram& program, const Launch& launch) {
  return program.program->plan().queues[launch.queue].instructions[launch.index];
}

/// Predicts the times of consecutive runs of one program.
class PredictedRuns {
 public:
  PredictedRuns(const TracedProgram& program, const std::vector<DeviceProfile>& profiles,
                std::size_t runs)
      : program_(program) {
    const tandem::Plan& plan = program.program->plan();
    spans_ = simulate_from_rest(plan, program.program->lowered(), profiles, static_cast<int>(runs));
    in_run_ = spans_.size() / runs;
    for (const Queue& queue : plan.queues) {
      span_of_.emplace_back(queue.instructions.size(), 0);
      calls_.emplace_back(queue.instructions.size(), 0);
    }
    for (std::size_t i = 0; i < in_run_; ++i) span_of_[spans_[i].queue][spans_[i].index] = i;
    for (const Launch& launch : program.launches) ++calls_[launch.queue][launch.index];
  }

  /// Appends the times of a run, which begins at `start`, to `times`.
  void add(std::size_t run, double start, LaunchTimes& times) const {
    Launch before{-1, -1};
    std::size_t call = 0;  // index among several calls of one instruction, which share its time
    for (const Launch& launch : program_.launches) {
      const bool is_same = launch.queue == before.queue && launch.index == before.index;
      call = is_same ? call + 1 : 0;
      before = launch;
      const Instruction::Kind kind = launched_by(program_, launch).kind;
      if (kind == Instruction::Kind::feed || kind == Instruction::Kind::read) {
        times.emplace_back();
        continue;
      }
      const SimulatedSpan& span = spans_[run * in_run_ + span_of_[launch.queue][launch.index]];
      const double share =
          (span.end - span.start) / static_cast<double>(calls_[launch.queue][launch.index]);
      const double begin = start + span.start + static_cast<double>(call) * share;
      times.push_back(LaunchTime{begin, begin + share});
    }
  }

  double end() const {
    double end = 0;
    for (const SimulatedSpan& span : spans_) end = std::max(end, span.end);
    return end;
  }

 private:
  const TracedProgram& program_;
  std::vector<SimulatedSpan> spans_;
  std::size_t in_run_ = 0;
  std::vector<std::vector<std::size_t>> span_of_, calls_;  // by queue and instruction
};

}  // namespace

LaunchTimes traced_times(const TracedSteps& traced, const std::vector<TraceSpan>& trace) {
  LaunchTimes times(traced.spans());
  if (trace.size() != traced.spans()) return times;
  for (std::size_t i = 0; i < trace.size(); ++i)
    times[i] = LaunchTime{trace[i].real_start, trace[i].real_end, trace[i].bytes};
  return times;
}

LaunchTimes probed_times(const TracedSteps& traced, const std::vector<LaunchTime>& nodes) {
  LaunchTimes times(traced.spans());
  std::size_t next = 0;
  for (const TracedRun& run : traced.runs()) {
    const TracedProgram& program = traced.programs()[run.program];
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      if (launched_by(program, program.launches[i]).kind != Instruction::Kind::run) continue;
      if (next < nodes.size()) times[run.begin + i] = nodes[next];
      ++next;
    }
  }
  return next == nodes.size() ? times : LaunchTimes(traced.spans());
}

LaunchTimes predicted_times(const TracedSteps& traced, const std::vector<DeviceProfile>& profiles,
                            double start) {
  LaunchTimes times;
  times.reserve(traced.spans());
  for (std::size_t run = 0; run < traced.runs().size();) {
    std::size_t following = 1;
    while (run + following < traced.runs().size() && traced.runs()[run + following].follows)
      ++following;
    const PredictedRuns predicted(traced.programs()[traced.runs()[run].program], profiles,
                                  following);
    for (std::size_t i = 0; i < following; ++i) predicted.add(i, start, times);
    start += predicted.end();
    run += following;
  }
  return times;
}

}  // namespace tandem::api
