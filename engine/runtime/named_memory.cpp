#include "engine/runtime/named_memory.h"

#include <utility>
#include <vector>

#include "engine/graph/host_memory.h"

namespace tandem {

std::unique_ptr<Memory> allocate_for(const MemoryPurpose& purpose, Device& device,
                                     std::size_t bytes) {
  try {
    return device.allocate(bytes);
  } catch (const Error& error) {
    if (device.facts().kind == "cpu" && error.kind() == ErrorKind::does_not_fit) {
      fail_without_memory({.message = "the host has no memory left for " + purpose.what,
                           .path = purpose.path,
                           .got = std::to_string(bytes) + " bytes more",
                           .fix = purpose.fix});
    }
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& d : problems) {
      if (!d.path.empty()) continue;
      d.path = purpose.path;
      d.message = purpose.what + ": " + d.message;
    }
    throw Error(error.kind(), std::move(problems));
  }
}

}  // namespace tandem
