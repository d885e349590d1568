// lr = base sqrt(s / (t + s)), as fairseq's inverse_sqrt: behind a warm-up of s steps, the rate of
// a step that has n steps before it is base sqrt(s / n).
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct InverseSquareRootSchedule {
  static constexpr std::string_view name = "inverse_square_root";
  static constexpr bool needs_length = false;
  std::optional<Duration> timescale;  // read: that of the warm-up where it is left out

  template <class Keys>
  void visit(Keys& keys) {
    keys.duration("timescale", timescale, "(warmup, or \"10000 steps\")",
                  "after three times so long the rate is half as high");
  }
  double factor(const SchedulePlace& place) const {
    const Duration scale = timescale.value_or(Duration{10000, Duration::Unit::steps});
    const auto steps = static_cast<double>(place.steps_of(scale));
    return std::sqrt(steps / (static_cast<double>(place.step(scale)) + steps));
  }
  bool operator==(const InverseSquareRootSchedule&) const = default;
};

}  // namespace tandem
