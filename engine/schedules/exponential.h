// lr = base gamma^(t / period), smooth; with a period of one step PyTorch's ExponentialLR.
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct ExponentialSchedule {
  static constexpr std::string_view name = "exponential";
  static constexpr bool needs_length = false;
  std::optional<Duration> period;  // set
  double gamma = 0.1;

  template <class V>
  void visit(V& v) {
    v.key("period", period, required, in_steps,
          "after this time the rate is gamma times what it was");
    v.key("gamma", gamma, at_least(0), "factor from period to period, in equal steps");
  }
  double factor(const SchedulePlace& place) const {
    return std::pow(gamma, static_cast<double>(place.step(*period)) /
                               static_cast<double>(place.steps_of(*period)));
  }
  bool operator==(const ExponentialSchedule&) const = default;
};

}  // namespace tandem
