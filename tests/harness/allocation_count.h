// Counts heap calls of all threads between two moments, to prove that a step allocates nothing.
#pragma once

#include <cstdint>

namespace tandem::testing {

/// False under the sanitizers, which have a heap of their own: then every count is 0.
bool counts_allocations();

/// Calls of malloc, calloc, realloc and similar functions (including operator new) since
/// construction.
class AllocationCount {
 public:
  AllocationCount();
  std::int64_t calls() const;
  /// Calls of the calling thread, which must be the one that made this object.
  std::int64_t own_calls() const;
  /// Calls before construction, since the program started.
  std::int64_t total() const { return start_; }

 private:
  std::int64_t start_, own_start_;
};

}  // namespace tandem::testing
