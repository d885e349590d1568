// What `train --log-operators` writes: times of operators and rows of tables in single steps.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "api/model/model.h"
#include "engine/training/tables/table_log.h"

namespace tandem::api {

/// Times the steps that it watches; others run as without it.
class OperatorLog final : public MicroBatchWatch {
 public:
  /// Both must outlive it.
  OperatorLog(const Engine& engine, const PlacedModel& placed) : engine_(engine), placed_(placed) {}
  OperatorLog(const OperatorLog&) = delete;
  OperatorLog& operator=(const OperatorLog&) = delete;

  /// Room for the trace of a step with these micro-batches.
  void reserve(const std::vector<Program*>& micro_batches);
  void before(Program& program) override;
  void after(Program& program, std::uint64_t ticket) override;
  std::string report(std::uint64_t step) override;

 private:
  bool mixed() const { return placed_.devices().size() > 1; }
  void synchronize() const;

  const Engine& engine_;
  const PlacedModel& placed_;
  std::size_t capacity_ = 0;
  std::vector<Program*> micro_batches_;                    // of the step so far
  std::map<const Program*, std::vector<double>> seconds_;  // per node, where the cpu does it all
  TableCounter tables_;
  std::optional<double> bandwidth_;  // once measured
};

}  // namespace tandem::api
