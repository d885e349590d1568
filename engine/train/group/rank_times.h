// How long the steps of each rank take without its waits for others: which rank delays all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

/// The slowest rank in the steps since the last call of `take`.
struct SlowestRank {
  int rank = 0;
  std::string machine;
  double seconds = 0, median = 0;  // a step: of that rank, and of the median of all

  /// Whether it delays the others for long enough to be reported.
  bool is_worth_telling() const { return seconds > 1.25 * median && seconds - median > 0.02; }
  /// "rank 3 (node2) is the slowest: 0.420 s a step, the median 0.210 s; the others wait for it"
  std::string text() const;
};

/// Times of one rank's steps.
class RankTimes {
 public:
  /// A step is launched, and no other is under way.
  void begin(const std::vector<Device*>& devices);
  /// The oldest step that is under way is done.
  void end(const std::vector<Device*>& devices);
  /// All ranks call it at the same point. Nothing where no rank knows for how long it waits.
  std::optional<SlowestRank> take(Rendezvous& ranks);

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point mark_;
  double waited_mark_ = 0;
  double seconds_ = 0, waited_ = 0;
  std::int64_t steps_ = 0;
};

/// The slowest rank, from the seconds a step of each rank; `machines` by rank.
SlowestRank slowest_of(const std::vector<double>& seconds,
                       const std::vector<std::string>& machines);

}  // namespace tandem
