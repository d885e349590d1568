// PyTorch's LinearLR from 1 on: lr = base + (final - base) t / T, T = the steps of the run after
// its warm-up.
#pragma once

#include "engine/schedules/place.h"

namespace tandem {

struct LinearSchedule {
  static constexpr std::string_view name = "linear";
  static constexpr bool needs_length = true;
  double final = 0;

  template <class V>
  void visit(V& v) {
    v.key("final", final, at_least(0), "learning rate at the end of the run");
  }
  double factor(const SchedulePlace& place) const {
    return 1 + (place.factor_of(final) - 1) * place.done();
  }
  bool operator==(const LinearSchedule&) const = default;
};

}  // namespace tandem
