// Work of a library that cannot end yet: collective operations wait for other ranks.
#pragma once

#include <cstdint>

namespace tandem::testing {

/// Of the function that the calling thread runs for `FakeRuntime::enqueue`.
struct WorkInTurn {
  /// The function's own, kept from one call to the next of the same piece of work; 0 at its first
  /// call. A graph's launch is a new piece.
  std::uint64_t token = 0;
  /// Set by the function where it cannot end yet: it is called again later, and what stands behind
  /// it on the stream waits.
  bool again = false;
};
WorkInTurn& work_in_turn();

}  // namespace tandem::testing
