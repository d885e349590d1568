// Lengths of time as configurations count them.
#pragma once

#include <cstdint>

namespace tandem::api {
inline namespace v1 {

/// A length in optimizer steps, in epochs of the training data or in seconds of wall-clock time.
struct Duration {
  enum class Unit : std::uint8_t { steps, epochs, seconds };
  double value = 0;
  Unit unit = Unit::steps;

  static constexpr Duration steps(std::int64_t count) { return {static_cast<double>(count)}; }
  static constexpr Duration epochs(double count) { return {count, Unit::epochs}; }
  static constexpr Duration seconds(double count) { return {count, Unit::seconds}; }
  static constexpr Duration minutes(double count) { return seconds(60 * count); }
  bool operator==(const Duration&) const = default;
};

}  // namespace v1
}  // namespace tandem::api
