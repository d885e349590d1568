// Counts calls of the heap, by any thread, between two moments: the proof that a step allocates
// nothing.
#pragma once

#include <cstdint>

namespace tandem::testing {

/// False under the sanitizers, which bring a heap of their own: then every count is 0.
bool counts_allocations();

/// Calls of malloc, calloc, realloc and their kin (operator new included) since construction.
class AllocationCount {
 public:
  AllocationCount();
  std::int64_t calls() const;
  /// Those of the calling thread, which is the one that made this.
  std::int64_t own_calls() const;
  /// Calls before construction, since the program started.
  std::int64_t total() const { return start_; }

 private:
  std::int64_t start_, own_start_;
};

}  // namespace tandem::testing
