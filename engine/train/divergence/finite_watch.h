// Checks the states of a running training, a part at a time, for values that are not finite.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/train/divergence/finite_check.h"

namespace tandem {

/// A finite loss can hide a parameter or running statistic that is not finite any more; a
/// checkpoint of it would push out the good ones. A small model is checked whole each time; of a
/// large one as much as takes a hundredth of the time that training has taken so far, round and
/// round.
class FiniteWatch {
 public:
  struct Place {  // between two steps
    std::uint64_t step = 0;
    DataPosition data;
  };

  /// Training continues at `place`, with states that are finite but for infinities in those of
  /// `infinite`. `parts_alone`: it watches only sharded states, of which each rank has a part.
  void start(const StateStore& states, std::set<std::string> infinite, const Place& place,
             bool parts_alone = false);
  /// Checks the next part, after the steps up to `place`; false where it is not finite.
  bool look(const Place& place);
  /// Checks all states; returns those that are not finite.
  std::vector<NotFiniteState> look_at_all(const Place& place);
  /// The place up to which a state is known to have been finite.
  Place finite_at(const std::string& name) const;
  /// Seconds that `look` has taken.
  double seconds() const { return seconds_; }

 private:
  struct Watched {
    std::string name;
    std::int64_t rows = 0;
    std::size_t row_bytes = 0;
    bool in_parts = false;
    Place finite, begun;  // `begun`: start of the current round
  };
  /// Checks a part of at most `bytes` bytes, and subtracts it from `left`.
  bool look_at_part(std::size_t bytes, std::size_t& left, const Place& place);

  const StateStore* states_ = nullptr;
  bool parts_alone_ = false;
  std::set<std::string> infinite_;
  Place start_;
  std::vector<Watched> watched_;
  std::size_t bytes_ = 0;  // bytes of all watched states
  std::size_t next_ = 0;   // index into watched_
  std::int64_t row_ = 0;   // its next row
  double seconds_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace tandem
