// PyTorch's CosineAnnealingWarmRestarts (Loshchilov and Hutter 2017, "SGDR"): a cosine from base to
// final over the first period, from base again over the next one, which is `multiplier` times as
// long.
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct CosineRestartsSchedule {
  static constexpr std::string_view name = "cosine_restarts";
  static constexpr bool needs_length = false;
  std::optional<Duration> period;  // set; PyTorch's T_0
  std::int64_t multiplier = 1;     // PyTorch's T_mult
  double final = 0;

  template <class V>
  void visit(V& v) {
    v.key("period", period, required, in_steps, "how long the first cosine lasts (T_0)");
    v.key("multiplier", multiplier, between(1, 1000),
          "how many times as long as the one before each other cosine lasts (T_mult)");
    v.key("final", final, at_least(0), "learning rate at the end of each cosine");
  }
  double factor(const SchedulePlace& place) const {
    std::int64_t length = place.steps_of(*period), t = place.step(*period);
    if (multiplier == 1) t %= length;
    for (; t >= length; length *= multiplier) t -= length;
    const double end = place.factor_of(final);
    const double done = static_cast<double>(t) / static_cast<double>(length);
    return end + (1 - end) * (1 + std::cos(M_PI * done)) / 2;
  }
  bool operator==(const CosineRestartsSchedule&) const = default;
};

}  // namespace tandem
