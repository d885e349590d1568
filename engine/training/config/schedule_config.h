// optimizer.schedule of train.toml: its kinds with their keys.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "engine/training/config/config_types.h"

namespace tandem {

struct ConstantSchedule {
  static constexpr std::string_view name = "constant";
  bool operator==(const ConstantSchedule&) const = default;
};
struct CosineSchedule {
  static constexpr std::string_view name = "cosine";
  double final = 0;  // the learning rate at the end of the run
  bool operator==(const CosineSchedule&) const = default;
};
struct StepSchedule {
  static constexpr std::string_view name = "step";
  std::optional<Duration> step_size;  // set; times gamma after every one
  double gamma = 0.1;
  bool operator==(const StepSchedule&) const = default;
};
struct LinearSchedule {
  static constexpr std::string_view name = "linear";
  double final = 0;  // the learning rate at the end of the run
  bool operator==(const LinearSchedule&) const = default;
};

/// Of the base learning rate; groups follow in proportion.
struct ScheduleConfig {
  std::variant<ConstantSchedule, CosineSchedule, StepSchedule, LinearSchedule> kind;
  std::optional<Duration> warmup;  // linear from 0
  bool operator==(const ScheduleConfig&) const = default;

  /// Whether the rate depends on the length of the run.
  bool needs_length() const {
    return std::holds_alternative<CosineSchedule>(kind) ||
           std::holds_alternative<LinearSchedule>(kind);
  }
};
void visit(KeyVisitor& v, ScheduleConfig& c);

}  // namespace tandem
