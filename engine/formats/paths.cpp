#include "engine/formats/paths.h"

#include <filesystem>
#include <system_error>

#include "engine/graph/error.h"

namespace tandem {

std::string absolute_path(const std::string& path) {
  if (path.empty()) {
    throw Error(
        ErrorKind::usage,
        {.message = "the name of a file or folder is empty", .expected = "a path", .got = "\"\""});
  }
  if (path.front() == '/') return path;
  return (std::filesystem::path(current_folder()) / path).string();
}

std::string normal_path(const std::string& path) {
  return std::filesystem::path(absolute_path(path)).lexically_normal().string();
}

std::string current_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (error) {
    throw Error(ErrorKind::runtime,
                {.message = "the current folder cannot be read: " + error.message(),
                 .fix = "change to a folder that is there, or name files from the root"});
  }
  return folder.string();
}

}  // namespace tandem
