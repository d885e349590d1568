// PyTorch's OneCycleLR (Smith and Topin 2018, "Super-Convergence") over the steps of the run: the
// rate rises from base / div_factor to base, the highest one, and falls to base / (div_factor
// final_div_factor); with three phases it falls to where it started on the way.
#pragma once

#include <cmath>

#include "engine/schedules/place.h"

namespace tandem {

/// The curve between rates.
enum class Anneal : std::uint8_t { cos, linear };
template <>
inline constexpr std::string_view names_of<Anneal> = "cos|linear";

struct OneCycleSchedule {
  static constexpr std::string_view name = "one_cycle";
  static constexpr bool needs_length = true;
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
  Anneal anneal = Anneal::cos;
  bool three_phase = false;

  template <class V>
  void visit(V& v) {
    v.key("pct_start", pct_start, between(0, 1), "part of the run in which the rate rises");
    v.key("div_factor", div_factor, at_least(1), "highest rate over the first one");
    v.key("final_div_factor", final_div_factor, at_least(1), "first rate over the last one");
    v.key("anneal", anneal, "the curve between rates");
    v.key("three_phase", three_phase,
          "falls to the first rate as fast as it rose, then to the last one");
  }
  double factor(const SchedulePlace& place) const {
    const auto total = static_cast<double>(place.length);
    const auto t = std::min(static_cast<double>(place.step()), total - 1);
    const double first = 1 / div_factor, last = first / final_div_factor;
    const double top = pct_start * total - 1;
    if (t <= top && top > 0) return between_rates(first, 1, t / top);
    const double middle = 2 * pct_start * total - 2;
    if (three_phase && t <= middle && middle > top)
      return between_rates(1, first, (t - top) / (middle - top));
    const double from = three_phase ? middle : top;
    const double done = total - 1 > from ? (t - from) / (total - 1 - from) : 1;
    return between_rates(three_phase ? first : 1, last, done);
  }
  bool operator==(const OneCycleSchedule&) const = default;

 private:
  double between_rates(double from, double to, double done) const {
    if (anneal == Anneal::linear) return (to - from) * done + from;
    return to + (from - to) / 2 * (1 + std::cos(M_PI * done));
  }
};

}  // namespace tandem
