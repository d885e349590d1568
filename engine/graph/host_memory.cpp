#include "engine/graph/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "engine/graph/control_group.h"

namespace tandem {
namespace {

std::size_t addresses_in_use() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

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
  if (memory.addresses != HostMemory::unlimited)
    memory.addresses_left = memory.addresses - std::min(memory.addresses, addresses_in_use());
  memory.group = memory_left_of_group();
  return memory;
}

std::size_t HostMemory::free() const {
  const std::size_t known = available > 0 ? available : bytes;
  return std::min({known, addresses_left, group});
}

void expect_memory(std::size_t bytes, Diagnostic d) {
  const HostMemory memory = host_memory();
  const std::size_t free = memory.free(), most = free - free / 16;
  if (bytes <= most) return;
  d.expected = "at most " + std::to_string(most) + " bytes, ";
  if (free == memory.addresses_left) {
    d.expected += "15/16 of what the process's limit of addresses leaves";
    d.fix = "raise the limit (ulimit -v), or " + d.fix;
  } else if (free == memory.group) {
    d.expected += "15/16 of what the limit of the process's control group leaves";
    d.fix = "raise that limit, or " + d.fix;
  } else {
    d.expected += "15/16 of what is available of the machine's " + std::to_string(memory.bytes);
  }
  throw Error(ErrorKind::does_not_fit, std::move(d));
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
