// PyTorch's MultiStepLR: lr = base gamma^(milestones that are over).
#pragma once

#include <cmath>
#include <vector>

#include "engine/schedules/place.h"

namespace tandem {

struct MultistepSchedule {
  static constexpr std::string_view name = "multistep";
  static constexpr bool needs_length = false;
  std::vector<Duration> milestones;
  double gamma = 0.1;

  template <class V>
  void visit(V& v) {
    v.key("milestones", milestones, required, in_steps,
          parts("[]", duration_value, "after this time, counted from the end of the warm-up"),
          "after which the rate falls, once after each");
    v.key("gamma", gamma, at_least(0), "factor from stair to stair");
  }
  double factor(const SchedulePlace& place) const {
    const auto over = std::count_if(milestones.begin(), milestones.end(), [&](const Duration& m) {
      return place.step(m) >= place.steps_of(m);
    });
    return std::pow(gamma, static_cast<double>(over));
  }
  bool operator==(const MultistepSchedule&) const = default;
};

}  // namespace tandem
