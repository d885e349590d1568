// Times single steps: by a probe where the cpu runs everything, else by the devices' monitor.
#include "api/train/operator_log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "api/policy/policy_case.h"
#include "api/timing/machine_rates.h"
#include "api/timing/memory_counters.h"
#include "api/timing/mixed_profile.h"
#include "api/timing/operator_times.h"
#include "api/timing/trace_slices.h"

namespace tandem::api {
namespace {

constexpr std::size_t most_operators = 25;

}  // namespace

void OperatorLog::reserve(const std::vector<Program*>& micro_batches) {
  capacity_ = trace_capacity(TracedSteps(micro_batches, 1));
  if (trace_ != nullptr && !mixed()) nodes_.reserve(capacity_);
}

void OperatorLog::synchronize() const {
  for (Device* device : placed_.devices()) device->synchronize();
}

void OperatorLog::before(Program& program) {
  if (micro_batches_.empty()) {
    began_ = std::chrono::steady_clock::now();
    nodes_.clear();
  }
  if (mixed() && micro_batches_.empty()) {
    synchronize();
    engine_.monitor->start_trace(capacity_);
  }
  micro_batches_.push_back(&program);
  // Reserves room, so that nothing is allocated between kernels.
  if (trace_ != nullptr && !mixed()) nodes_.reserve(nodes_.size() + program.plan().launches.size());
  if (mixed() || seconds_.contains(&program)) return;
  std::vector<double>& seconds = seconds_[&program];
  seconds.assign(program.lowered().graph.nodes.size(), 0.0);
  program.set_probe(timing_probe([this, &seconds](NodeId node, ProbeTime begin, ProbeTime end) {
    seconds[node.index] += std::chrono::duration<double>(end - begin).count();
    if (trace_ != nullptr) nodes_.push_back({StepTrace::seconds(begin), StepTrace::seconds(end)});
  }));
}

void OperatorLog::trace_step(std::uint64_t step, const TracedSteps& traced,
                             const std::vector<TraceSpan>& spans) {
  if (!trace_->wants(step) || (mixed() && spans.empty())) return;
  double begin = StepTrace::seconds(began_);
  double end = StepTrace::seconds(std::chrono::steady_clock::now());
  nlohmann::ordered_json events;
  LaunchTimes times;
  if (mixed()) {
    times = traced_times(traced, spans);
    events = trace_events(traced, *engine_.monitor, spans);
    // The devices' record has a clock of its own, so the step's start and end come from it.
    const auto earlier = [](const TraceSpan& a, const TraceSpan& b) {
      return a.real_start < b.real_start;
    };
    const auto ends_earlier = [](const TraceSpan& a, const TraceSpan& b) {
      return a.real_end < b.real_end;
    };
    begin = std::min_element(spans.begin(), spans.end(), earlier)->real_start;
    end = std::max_element(spans.begin(), spans.end(), ends_earlier)->real_end;
  } else {
    times = probed_times(traced, nodes_);
    events = trace_slices(traced, times, measured_process);
  }
  const LaunchTimes predicted = predicted_times(traced, device_profiles(placed_), begin);
  for (const nlohmann::ordered_json& more :
       {memory_counters(traced, times), trace_slices(traced, predicted, predicted_process)})
    events.insert(events.end(), more.begin(), more.end());
  trace_->add_step(step, begin, end, std::move(events));
  trace_->write(/*at_end=*/false);
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
    if (trace_ != nullptr) trace_step(step, traced, trace);
  } else {
    for (const TracedProgram& program : traced.programs()) {
      program.program->set_probe(nullptr);
      seconds.push_back(std::move(seconds_.at(program.program)));
    }
    if (trace_ != nullptr) trace_step(step, traced, {});
  }
  const std::vector<OperatorTime> operators = operator_times(traced, seconds, tables_);
  micro_batches_.clear();
  seconds_.clear();
  tables_.clear();
  record_.clear();
  if (!tells_) return "";
  if (!is_whole) {
    return fmt::format(
        "operators of step {}: no times were kept, as the devices' record of the step does not "
        "hold "
        "each of its operations once",
        step);
  }
  if (!bandwidth_ && is_memory_bound(operators)) bandwidth_ = bandwidth_gb_s(engine_);
  nlohmann::ordered_json json{{"step", step}, {"operators", nlohmann::ordered_json::array()}};
  for (const OperatorTime& time : operators)
    json["operators"].push_back(operator_json(time, bandwidth_.value_or(0)));
  record_ = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  std::string text = fmt::format("operators of step {}, by time\n", step) +
                     operators_text(operators, most_operators) +
                     tables_text(operators, bandwidth_.value_or(0));
  text.pop_back();  // the last line break
  return text;
}

}  // namespace tandem::api
