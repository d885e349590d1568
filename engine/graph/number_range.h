// Which numbers a setting may be.
#pragma once

namespace tandem {

struct NumberRange {
  double low = -1e300, high = 1e300;
  bool below = false;  // high itself is out of range
};
constexpr NumberRange at_least(double low) { return {low, 1e300, false}; }
constexpr NumberRange between(double low, double high) { return {low, high, false}; }
constexpr NumberRange from_below(double low, double high) { return {low, high, true}; }

}  // namespace tandem
