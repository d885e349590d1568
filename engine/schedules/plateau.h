// PyTorch's ReduceLROnPlateau: the rate falls where a metric of the evaluations has not become
// better for more than `patience` of them. PlateauState is part of the run's state.
#pragma once

#include <cmath>
#include <string>

#include "engine/schedules/place.h"

namespace tandem {

/// The state of a schedule after the evaluations so far.
struct PlateauState {
  double scale = 1;  // factor of the learning rate
  std::optional<double> best;
  std::int64_t bad_evaluations = 0;  // since the best one or since the rate fell
  std::int64_t cooldown = 0;         // how many evaluations are still ignored
  bool operator==(const PlateauState&) const = default;
};

/// Whether the threshold is a part of the best value, or a number.
enum class ThresholdMode : std::uint8_t { rel, abs };
template <>
inline constexpr std::string_view names_of<ThresholdMode> = "rel|abs";

struct PlateauSchedule {
  static constexpr std::string_view name = "plateau";
  static constexpr bool needs_length = false;
  std::string metric = "loss";
  ThresholdMode threshold_mode = ThresholdMode::rel;
  double decay = 0.1, threshold = 1e-4, min_lr = 0, epsilon = 1e-8;
  std::int64_t patience = 10, cooldown = 0;

  template <class V>
  void visit(V& v) {
    v.key("metric", metric,
          "name of the loss or of one of eval.metrics that is one number; what is better "
          "follows from it");
    v.key("factor", decay, from_below(0, 1), "factor of the rate each time it falls");
    v.key("patience", patience, at_least(0),
          "this number of evaluations without a better one is accepted");
    v.key("threshold", threshold, at_least(0),
          "only a value that is better by more than this counts");
    v.key("threshold_mode", threshold_mode,
          "the threshold is a part of the best value, or a number");
    v.key("cooldown", cooldown, at_least(0),
          "this number of evaluations after the rate fell is ignored");
    v.key("min_lr", min_lr, at_least(0), "learning rate below which it does not fall");
    v.key("eps", epsilon, at_least(0), "the rate stays if it would fall by less than this");
  }
  double factor(const SchedulePlace&) const { return 1; }

  /// The state after an evaluation that gave `value`.
  PlateauState next(PlateauState state, double value, bool larger_is_better, double base_lr) const {
    const bool better =
        !std::isnan(value) && (!state.best || is_better(value, *state.best, larger_is_better));
    if (better) state.best = value;
    state.bad_evaluations = better ? 0 : state.bad_evaluations + 1;
    if (state.cooldown > 0) {
      --state.cooldown;
      state.bad_evaluations = 0;
    }
    if (state.bad_evaluations <= patience) return state;
    const double now = base_lr * state.scale, lower = std::max(now * decay, min_lr);
    if (now - lower > epsilon) state.scale = lower / base_lr;
    state.cooldown = cooldown;
    state.bad_evaluations = 0;
    return state;
  }
  bool operator==(const PlateauSchedule&) const = default;

 private:
  bool is_better(double value, double best, bool larger) const {
    if (threshold_mode == ThresholdMode::abs)
      return larger ? value > best + threshold : value < best - threshold;
    return larger ? value > best * (1 + threshold) : value < best * (1 - threshold);
  }
};

}  // namespace tandem
