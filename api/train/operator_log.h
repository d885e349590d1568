// Writes the output of `train --log-operators` and `--trace`: times of operators and rows of tables
// in single steps.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "api/model/model.h"
#include "api/timing/launch_times.h"
#include "api/train/step_trace.h"
#include "engine/train/tables/table_log.h"

namespace tandem::api {

/// Times the steps that it watches; other steps run as if it did not exist.
class OperatorLog final : public MicroBatchWatch {
 public:
  /// All arguments must outlive it. `tells`: whether to write lines and operators.json for each
  /// watched step; `trace` may be null.
  OperatorLog(const Engine& engine, const PlacedModel& placed, bool tells, StepTrace* trace)
      : engine_(engine), placed_(placed), tells_(tells), trace_(trace) {}
  OperatorLog(const OperatorLog&) = delete;
  OperatorLog& operator=(const OperatorLog&) = delete;

  /// Reserves room for the trace of a step with these micro-batches.
  void reserve(const std::vector<Program*>& micro_batches);
  bool watches(std::uint64_t step, bool is_logged) override {
    if (trace_ == nullptr) return is_logged;
    return trace_->wants(step) || (tells_ && is_logged);
  }
  bool lets_steps_overlap() const override { return trace_ != nullptr; }
  void before(Program& program) override;
  void after(Program& program, std::uint64_t ticket) override;
  std::string report(std::uint64_t step) override;
  std::string record() const override { return record_; }

 private:
  bool mixed() const { return placed_.devices().size() > 1; }
  void synchronize() const;

  const Engine& engine_;
  const PlacedModel& placed_;
  /// Adds the step to the trace if it is one of the chosen ones, with the spans of devices where
  /// there are any.
  void trace_step(std::uint64_t step, const TracedSteps& traced,
                  const std::vector<TraceSpan>& spans);

  bool tells_;
  StepTrace* trace_;
  ProbeTime began_{};
  /// Times of a traced step on the cpu only, in the order in which nodes ran.
  std::vector<LaunchTime> nodes_;
  std::size_t capacity_ = 0;
  std::vector<Program*> micro_batches_;                    // micro-batches of the step so far
  std::map<const Program*, std::vector<double>> seconds_;  // per node, where the cpu does it all
  TableCounter tables_;
  std::optional<double> bandwidth_;  // once measured
  std::string record_;
};

}  // namespace tandem::api
