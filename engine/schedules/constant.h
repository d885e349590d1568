// The base rate, PyTorch's ConstantLR with factor 1.
#pragma once

#include "engine/schedules/place.h"

namespace tandem {

struct ConstantSchedule {
  static constexpr std::string_view name = "constant";
  static constexpr bool needs_length = false;

  template <class V>
  void visit(V&) {}
  double factor(const SchedulePlace&) const { return 1; }
  bool operator==(const ConstantSchedule&) const = default;
};

}  // namespace tandem
