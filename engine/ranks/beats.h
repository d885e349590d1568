// Signs of life between ranks: each side of a connection sends one a second, from a thread of its
// own, so that long computations, checkpoints and compilations do not count as silence.
#pragma once

#include <algorithm>
#include <chrono>

#include "engine/ranks/sockets.h"

namespace tandem {

class Beats {
 public:
  static constexpr std::chrono::milliseconds interval{1000};

  /// Called at each turn of the thread's loop. A loop that has not turned for long was stopped
  /// itself, with the whole job or machine: silence in that time does not count.
  void turn(RankClock::time_point now) {
    constexpr std::chrono::milliseconds longest_turn{3000};
    if (now - last_turn_ > longest_turn) awake_ = now;
    last_turn_ = now;
  }
  bool is_due(RankClock::time_point now) {
    if (now < next_) return false;
    next_ = now + interval;
    return true;
  }
  RankClock::time_point next() const { return next_; }
  /// How long the other side has been silent, if it was last heard at `heard`.
  RankClock::duration silence(RankClock::time_point heard, RankClock::time_point now) const {
    return now - std::max(heard, awake_);
  }

 private:
  RankClock::time_point last_turn_ = RankClock::now(), awake_ = last_turn_,
                        next_ = last_turn_ + interval;
};

}  // namespace tandem
