// What configurations are made of: places in files, durations, names of choices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/graph/structures/where.h"

namespace tandem {

class KeyVisitor;  // engine/config/keys/key_visitor.h

/// "train.toml:3:10", or "the command line".
std::string where_text(const Where& where);

/// "500 steps", "1 epoch", "30 min".
struct Duration {
  enum class Unit : std::uint8_t { steps, epochs, seconds };
  double value = 0;
  Unit unit = Unit::steps;

  bool operator==(const Duration&) const = default;
  /// In optimizer steps, at least 1 (rounded to nearest); a time has no steps: 0.
  std::int64_t steps(std::int64_t steps_per_epoch) const;
};
std::string to_string(const Duration& duration);

/// "a|b|c": the names of an enum's values in their order, which start at 0.
template <class Enum>
inline constexpr std::string_view names_of = "";

}  // namespace tandem
