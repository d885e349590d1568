// PyTorch's CosineAnnealingLR: lr = final + (base - final) (1 + cos(pi t / T)) / 2, T = the steps
// of the run after its warm-up.
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

struct CosineSchedule {
  static constexpr std::string_view name = "cosine";
  static constexpr bool needs_length = true;
  double final = 0;

  template <class V>
  void visit(V& v) {
    v.key("final", final, at_least(0), "learning rate at the end of the run");
  }
  double factor(const SchedulePlace& place) const {
    const double end = place.factor_of(final);
    return end + (1 - end) * (1 + std::cos(M_PI * place.done())) / 2;
  }
  bool operator==(const CosineSchedule&) const = default;
};

}  // namespace tandem
