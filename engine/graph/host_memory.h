// What memory the host has, and the error where it gives none.
#pragma once

#include <cstddef>
#include <limits>

#include "engine/graph/error.h"

namespace tandem {

struct HostMemory {
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  std::size_t bytes = 0;              // of the machine
  std::size_t available = 0;          // of them, that programs may take now; 0: not known
  std::size_t addresses = unlimited;  // that this process may have in all (RLIMIT_AS)
};
HostMemory host_memory();

/// Throws Error{does_not_fit} of a host that gives no memory: `d` says for what (`path`,
/// `message`), how many bytes (`got`) and how to need less (`fix`); what the machine has, or the
/// process may have, is added.
[[noreturn]] void fail_without_memory(Diagnostic d);

}  // namespace tandem
