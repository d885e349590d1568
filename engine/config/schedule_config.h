// optimizer.schedule of train.toml: one shape of the learning rate, or several one after the other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/keys/config_types.h"
#include "engine/schedules/all_schedules.h"

namespace tandem {

template <class Kind>
struct ShapeOf {
  Kind kind;
  std::optional<Duration> warmup;  // linear from 0
  bool operator==(const ShapeOf&) const = default;

  /// Whether the rate depends on how long it holds.
  bool needs_length() const {
    return std::visit([](const auto& of) { return of.needs_length; }, kind);
  }
};

using ScheduleShape = ShapeOf<ScheduleKind>;

/// One of several shapes.
struct SchedulePart : ShapeOf<SchedulePartKind> {
  std::optional<Duration> length;  // unset: the rest of the run
  Where where;
  bool operator==(const SchedulePart&) const = default;
};

/// Schedule of the base learning rate; groups follow in proportion, unless they have their own.
struct ScheduleConfig : ScheduleShape {
  std::vector<SchedulePart> parts;  // in place of the one shape; all but the last have a length
  bool operator==(const ScheduleConfig&) const = default;

  /// Whether the rate depends on the length of the run.
  bool needs_length() const {
    if (parts.empty()) return ScheduleShape::needs_length();
    return !parts.back().length && parts.back().needs_length();
  }
  const PlateauSchedule* plateau() const { return std::get_if<PlateauSchedule>(&kind); }
};
void visit(KeyVisitor& v, ScheduleConfig& c);

/// f(key, duration) for each duration in it; "parts.0.warmup".
void each_duration(const ScheduleConfig& config,
                   const std::function<void(const std::string& key, const Duration&)>& f);

}  // namespace tandem
