// Work of a library that cannot end yet, such as a collective operation that waits for other ranks.
#pragma once

#include <cstdint>

namespace tandem::testing {

/// State of the function that the calling thread runs for `FakeRuntime::enqueue`.
struct WorkInTurn {
  /// For the function's own use: kept between calls for the same piece of work, 0 at the first
  /// call. Each launch of a graph is a new piece of work.
  std::uint64_t token = 0;
  /// Set by the function if it cannot end yet: it is called again later, and later work on the
  /// stream waits.
  bool again = false;
};
WorkInTurn& work_in_turn();

}  // namespace tandem::testing
