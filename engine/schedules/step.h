// PyTorch's StepLR: lr = base gamma^floor(t / step_size).
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct StepSchedule {
  static constexpr std::string_view name = "step";
  static constexpr bool needs_length = false;
  std::optional<Duration> step_size;  // set
  double gamma = 0.1;

  template <class V>
  void visit(V& v) {
    v.key("step_size", step_size, required, in_steps, "how long one stair lasts");
    v.key("gamma", gamma, at_least(0), "factor from stair to stair");
  }
  double factor(const SchedulePlace& place) const {
    const std::int64_t stairs = place.step(*step_size) / place.steps_of(*step_size);
    return std::pow(gamma, static_cast<double>(stairs));
  }
  bool operator==(const StepSchedule&) const = default;
};

}  // namespace tandem
