// Measures the peak memory of a piece of work, in a process of its own.
#pragma once

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "tests/harness/allocation_count.h"
#include "tests/harness/few_addresses.h"

namespace tandem::testing {

/// In bytes: the peak of resident memory, minus what was resident before `work`. Runs it in a
/// forked process, so that its changes to memory are lost. Returns the greatest number where it
/// threw or needed more than 16 GiB of further addresses.
template <class F>
std::size_t peak_memory_of(F&& work) {
  const auto kilobytes = [](const std::string& wanted) {
    std::ifstream file("/proc/self/status");
    std::size_t number = 0;
    for (std::string name, rest; file >> name;) {
      if (name == wanted) file >> number;
      std::getline(file, rest);
    }
    return number;
  };
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    std::size_t peak = std::numeric_limits<std::size_t>::max();
    std::optional<FewAddresses> few;
    if (counts_allocations()) few.emplace(std::size_t{16} << 30);
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM starts at what is resident now
    const std::size_t before = kilobytes("VmRSS:");
    try {
      work();
      peak = (kilobytes("VmHWM:") - before) << 10;
    } catch (...) {
    }
    const bool told = write(ends[1], &peak, sizeof peak) == sizeof peak;
    _exit(told ? 0 : 1);
  }
  std::size_t peak = std::numeric_limits<std::size_t>::max();
  close(ends[1]);
  if (read(ends[0], &peak, sizeof peak) != sizeof peak)
    peak = std::numeric_limits<std::size_t>::max();
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return peak;
}

}  // namespace tandem::testing
