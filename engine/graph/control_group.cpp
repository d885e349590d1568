#include "engine/graph/control_group.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace tandem {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// The file's number; none where it says "max".
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::uint64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

/// The sum of the lines inactive_file and active_file in a group's memory.stat.
std::uint64_t pages_of_files(const std::string& folder, const std::string& prefix) {
  std::uint64_t bytes = 0, number = 0;
  std::ifstream file(folder + "/memory.stat");
  for (std::string name; file >> name >> number;) {
    if (name == prefix + "inactive_file" || name == prefix + "active_file") bytes += number;
  }
  return bytes;
}

std::size_t left_of(const std::string& folder, bool second_version) {
  const auto limit =
      number_in(folder + (second_version ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used =
      number_in(folder + (second_version ? "/memory.current" : "/memory.usage_in_bytes"));
  // Without a limit the first version shows a number close to 2^63.
  if (!limit || !used || *limit >= std::uint64_t{1} << 62) return unlimited;
  const std::uint64_t free_pages = pages_of_files(folder, second_version ? "" : "total_");
  const std::uint64_t taken = *used - std::min(free_pages, *used);
  return taken < *limit ? *limit - taken : 0;
}

}  // namespace

std::size_t memory_left_of_group(const std::string& groups, const std::string& root) {
  std::size_t left = unlimited;
  std::ifstream file(groups);
  for (std::string line; std::getline(file, line);) {  // ID:CONTROLLERS:GROUP
    std::istringstream fields(line);
    std::string id, controllers, group;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, group);
    const bool second_version = controllers.empty();
    const bool of_memory = ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (!second_version && !of_memory) continue;
    const std::string top = root + (second_version ? "" : "/" + controllers);
    while (true) {
      left = std::min(left, left_of(top + group, second_version));
      const std::size_t slash = group.rfind('/');
      if (slash == std::string::npos) break;
      group.resize(slash);
    }
  }
  return left;
}

}  // namespace tandem
