// How much memory the process's control group leaves it (containers, batch systems).
#pragma once

#include <cstddef>
#include <string>

namespace tandem {

/// Bytes up to the tightest memory limit of the process's control group and of all groups around
/// it; pages of files, which the system gives back, count as free. The greatest number where there
/// is no limit. `groups`: which groups the process is in; `root`: where they are mounted.
std::size_t memory_left_of_group(const std::string& groups = "/proc/self/cgroup",
                                 const std::string& root = "/sys/fs/cgroup");

}  // namespace tandem
