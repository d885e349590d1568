// lr = base sqrt(s / (t + s)), as fairseq's inverse_sqrt: after a warm-up of s steps, a step that
// has n steps before it has the rate base sqrt(s / n).
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct InverseSquareRootSchedule {
  static constexpr std::string_view name = "inverse_square_root";
  static constexpr bool needs_length = false;
  std::optional<Duration> timescale;  // where left out: set to the warm-up's when read

  template <class V>
  void visit(V& v) {
    v.key("timescale", timescale, in_steps, by_default("(warmup, or \"10000 steps\")"),
          "after three times this length the rate is half as high");
  }
  double factor(const SchedulePlace& place) const {
    const Duration scale = timescale.value_or(Duration{10000, Duration::Unit::steps});
    const auto steps = static_cast<double>(place.steps_of(scale));
    return std::sqrt(steps / (static_cast<double>(place.step(scale)) + steps));
  }
  bool operator==(const InverseSquareRootSchedule&) const = default;
};

}  // namespace tandem
