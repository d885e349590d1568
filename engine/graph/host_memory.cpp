#include "engine/graph/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

namespace tandem {

HostMemory host_memory() {
  HostMemory memory;
  memory.bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                 static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  std::ifstream file("/proc/meminfo");  // lines of "NAME: NUMBER kB"
  for (std::string name, rest; file >> name && std::getline(file, rest);) {
    if (name == "MemAvailable:") memory.available = std::stoull(rest) << 10;
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    memory.addresses = limit.rlim_cur;
  return memory;
}

void fail_without_memory(Diagnostic d) {
  const HostMemory memory = host_memory();
  const bool limited = memory.addresses != HostMemory::unlimited;
  if (limited) {
    d.expected = "at most " + std::to_string(memory.addresses) +
                 " bytes of addresses in all, to which the process is limited";
    d.fix = "raise the limit (ulimit -v), or " + d.fix;
  } else {
    d.expected = "at most " + std::to_string(memory.bytes) + " bytes, which the machine has";
    if (memory.available > 0)
      d.expected += " (" + std::to_string(memory.available) + " are available now)";
  }
  throw Error(ErrorKind::does_not_fit, std::move(d));
}

}  // namespace tandem
