// optimizer.ema, .swa and .lookahead of train.toml: weights that follow those that are trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/config/keys/config_types.h"

namespace tandem {

struct EmaConfig {
  std::string at = "**";
  double decay = 0.999;
  std::optional<Duration> start;  // unset: with the first step
  /// Whether the decay is warmed up.
  bool warmup = false;
  Where where;
  bool operator==(const EmaConfig&) const = default;
};
struct SwaConfig {
  std::string at = "**";
  std::optional<Duration> start;  // set
  Duration every{1, Duration::Unit::epochs};
  Where where;
  bool operator==(const SwaConfig&) const = default;
};
struct LookaheadConfig {
  std::string at = "**";
  std::int64_t k = 5;
  double alpha = 0.5;
  Where where;
  bool operator==(const LookaheadConfig&) const = default;
};
void visit(KeyVisitor& v, EmaConfig& c);
void visit(KeyVisitor& v, SwaConfig& c);
void visit(KeyVisitor& v, LookaheadConfig& c);

/// Which weights something uses.
enum class Weights : std::uint8_t {
  trained,
  ema,
  swa,
};
template <>
inline constexpr std::string_view names_of<Weights> = "trained|ema|swa";

}  // namespace tandem
