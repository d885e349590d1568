#include "engine/train/checkpoints/checkpoint_room.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace tandem {
namespace {

std::string mib(double bytes) { return fmt::format("{:.1f} MiB", bytes / (1 << 20)); }

}  // namespace

std::optional<std::uint64_t> free_bytes(const std::string& folder) {
  std::filesystem::path path = folder.empty() ? "." : folder;
  std::error_code error;
  std::filesystem::space_info space = std::filesystem::space(path, error);
  while (error && path.has_relative_path()) {
    path = path.parent_path();
    if (path.empty()) path = ".";
    space = std::filesystem::space(path, error);
    if (path == ".") break;
  }
  if (error) return std::nullopt;
  return space.available;
}

std::string room_warning(std::optional<std::uint64_t> free, std::uint64_t checkpoint_bytes,
                         std::int64_t kept) {
  // In floating point: `kept` is what a person has written.
  const auto one = static_cast<double>(checkpoint_bytes);
  const double all = one * (static_cast<double>(kept) + 1);
  if (!free || static_cast<double>(*free) >= all) return "";
  const std::string left = mib(static_cast<double>(*free));
  if (static_cast<double>(*free) < one) {
    return fmt::format("no checkpoint can be written: one takes {}, the disk has {} left", mib(one),
                       left);
  }
  return fmt::format(
      "the checkpoints may not fit: {} of {} and another while it is written take {}, the disk has "
      "{} left (checkpoint.keep says how many stay)",
      kept, mib(one), mib(all), left);
}

}  // namespace tandem
