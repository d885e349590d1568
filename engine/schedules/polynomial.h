// lr = final + (base - final) (1 - t / T)^power, T = the steps of the run after its warm-up; with
// final = 0 PyTorch's PolynomialLR.
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct PolynomialSchedule {
  static constexpr std::string_view name = "polynomial";
  static constexpr bool needs_length = true;
  double power = 1, final = 0;

  template <class V>
  void visit(V& v) {
    v.key("power", power, at_least(0), "exponent of the part of the run that is left");
    v.key("final", final, at_least(0), "learning rate at the end of the run");
  }
  double factor(const SchedulePlace& place) const {
    const double end = place.factor_of(final);
    return end + (1 - end) * std::pow(1 - place.done(), power);
  }
  bool operator==(const PolynomialSchedule&) const = default;
};

}  // namespace tandem
