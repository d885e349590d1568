// Single steps are timed: by a probe where the cpu does everything, else by the devices' monitor.
#include "api/train/operator_log.h"

#include <chrono>

#include <fmt/format.h>

#include "api/timing/machine_rates.h"
#include "api/timing/mixed_profile.h"
#include "api/timing/operator_times.h"

namespace tandem::api {
namespace {

constexpr std::size_t most_operators = 25;

}  // namespace

void OperatorLog::reserve(const std::vector<Program*>& micro_batches) {
  capacity_ = trace_capacity(TracedSteps(micro_batches, 1));
}

void OperatorLog::synchronize() const {
  for (Device* device : placed_.devices()) device->synchronize();
}

void OperatorLog::before(Program& program) {
  if (mixed() && micro_batches_.empty()) {
    synchronize();
    engine_.monitor->start_trace(capacity_);
  }
  micro_batches_.push_back(&program);
  if (mixed() || seconds_.contains(&program)) return;
  std::vector<double>& seconds = seconds_[&program];
  seconds.assign(program.lowered().graph.nodes.size(), 0.0);
  program.set_probe(timing_probe([&seconds](NodeId node, ProbeTime begin, ProbeTime end) {
    seconds[node.index] += std::chrono::duration<double>(end - begin).count();
  }));
}

void OperatorLog::after(Program& program, std::uint64_t ticket) { tables_.after(program, ticket); }

std::string OperatorLog::report(std::uint64_t step) {
  const TracedSteps traced(micro_batches_, 1);
  std::vector<std::vector<double>> seconds;
  bool is_whole = true;
  if (mixed()) {
    synchronize();
    const std::vector<TraceSpan> trace = engine_.monitor->trace();
    is_whole = trace.size() == traced.spans();
    seconds = traced_node_seconds(traced, trace);
    engine_.monitor->start_trace(0);
  } else {
    for (const TracedProgram& program : traced.programs()) {
      program.program->set_probe(nullptr);
      seconds.push_back(std::move(seconds_.at(program.program)));
    }
  }
  const std::vector<OperatorTime> operators = operator_times(traced, seconds, tables_);
  micro_batches_.clear();
  seconds_.clear();
  tables_.clear();
  if (!is_whole) {
    return fmt::format(
        "operators of step {}: no times were kept, as the devices' record of the step does not "
        "hold "
        "each of its operations once",
        step);
  }
  if (!bandwidth_ && is_memory_bound(operators)) bandwidth_ = bandwidth_gb_s(engine_);
  std::string text = fmt::format("operators of step {}, by time\n", step) +
                     operators_text(operators, most_operators) +
                     tables_text(operators, bandwidth_.value_or(0));
  text.pop_back();  // the last line's end
  return text;
}

}  // namespace tandem::api
