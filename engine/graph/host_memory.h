// How much memory the host has, and the error where it gives none.
#pragma once

#include <cstddef>
#include <limits>

#include "engine/graph/error.h"

namespace tandem {

struct HostMemory {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  std::size_t bytes = 0;                   // the machine's memory
  std::size_t available = 0;               // what programs may take of it now; 0: not known
  std::size_t addresses = unlimited;       // limit of this process (RLIMIT_AS)
  std::size_t addresses_left = unlimited;  // what is left of that
  std::size_t group = unlimited;           // what the limits of control groups leave

  /// Bytes that the process may still take: the least of the three.
  std::size_t free() const;
};
HostMemory host_memory();

/// Throws Error{does_not_fit} for a host that gives no memory: `d` says what it was for (`path`,
/// `message`), how many bytes (`got`) and how to need less (`fix`); what the machine has, or the
/// process may have, is added.
[[noreturn]] void fail_without_memory(Diagnostic d);

/// Throws Error{does_not_fit} before anything is taken, where `bytes` are more than the host has
/// free (15/16 of it: the rest of the program takes memory as well). `d` as above; what is free,
/// and by which limit, is added.
void expect_memory(std::size_t bytes, Diagnostic d);

}  // namespace tandem
