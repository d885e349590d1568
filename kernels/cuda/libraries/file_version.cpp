#include "kernels/cuda/libraries/file_version.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "engine/graph/text.h"

namespace tandem::cuda {
namespace {

namespace fs = std::filesystem;

/// "9.19.0" is {9, 19, 0}; nothing where it is anything else, or only one number.
std::vector<int> numbers_of(std::string_view text) {
  std::vector<int> numbers;
  const char *at = text.data(), *const end = text.data() + text.size();
  while (true) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return {};
    numbers.push_back(number);
    if (rest == end) break;
    if (*rest != '.') return {};
    at = rest + 1;
  }
  return numbers.size() < 2 ? std::vector<int>() : numbers;
}

std::optional<FileVersion> by_name(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string_view mark = ".so.";
  const std::size_t place = name.find(mark);
  if (place == std::string::npos) return std::nullopt;
  FileVersion version{numbers_of(std::string_view(name).substr(place + mark.size())), 0};
  if (version.numbers.empty()) return std::nullopt;
  return version;
}

/// The version in "nvidia_cudnn_cu13-9.19.0.56.dist-info".
std::optional<FileVersion> by_package_name(const std::string& folder) {
  const std::string_view end = ".dist-info", cuda = "_cu";
  const std::string_view name = std::string_view(folder).substr(0, folder.size() - end.size());
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  FileVersion version{numbers_of(name.substr(dash + 1)), 0};
  if (version.numbers.empty()) return std::nullopt;
  const std::string_view package = name.substr(0, dash);
  if (const std::size_t place = package.rfind(cuda); place != std::string_view::npos) {
    const std::string_view number = package.substr(place + cuda.size());
    std::from_chars(number.data(), number.data() + number.size(), version.cuda);
  }
  return version;
}

/// Whether RECORD, a line for each file that begins with its path, names the file.
bool lists(const fs::path& package, const std::string& file) {
  std::ifstream record(package / "RECORD");
  for (std::string line; std::getline(record, line);) {
    if (line.starts_with(file) && (line.size() == file.size() || line[file.size()] == ','))
      return true;
  }
  return false;
}

std::optional<FileVersion> by_package(const fs::path& file) {
  const fs::path nvidia = file.parent_path().parent_path().parent_path();
  if (nvidia.filename() != "nvidia") return std::nullopt;
  const fs::path packages = nvidia.parent_path();
  const std::string inside = file.lexically_relative(packages).generic_string();
  std::optional<FileVersion> found;
  std::error_code error;
  for (fs::directory_iterator entry(packages, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with("nvidia") || !name.ends_with(".dist-info")) continue;
    if (!lists(entry->path(), inside)) continue;
    if (found) return std::nullopt;  // one has overwritten the other's
    found = by_package_name(name);
    if (!found) return std::nullopt;
  }
  return found;
}

}  // namespace

std::string FileVersion::text() const {
  return joined(numbers, ".", [](int number) { return std::to_string(number); });
}

std::optional<FileVersion> version_of_file(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) return std::nullopt;
  if (auto version = by_name(file)) return version;
  return by_package(file);
}

}  // namespace tandem::cuda
