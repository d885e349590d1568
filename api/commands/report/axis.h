// Axes of charts: ticks at round numbers, and where values lie between them.
#pragma once

#include <string>
#include <vector>

namespace tandem::api {

enum class AxisKind {
  linear,
  logarithmic,
  bytes,  // from 0 on, ticks at powers of two
  steps,  // whole numbers; ends where the values end
};

struct Tick {
  double at = 0;      // from 0 to 1
  std::string label;  // with the unit where the axis has one
};

/// From a value to a place on an axis, from 0 to 1.
class Axis {
 public:
  /// Both ends are moved outwards to the next tick, except for steps. A logarithmic axis needs
  /// values above 0 and is linear otherwise. `most_ticks`: the approximate number of ticks.
  Axis(double least, double greatest, AxisKind kind = AxisKind::linear, int most_ticks = 5);

  double at(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  double least() const { return least_; }
  double greatest() const { return greatest_; }

 private:
  double least_, greatest_;
  AxisKind kind_;
  std::vector<Tick> ticks_;
};

}  // namespace tandem::api
