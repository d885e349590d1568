#include "api/output_file.h"

#include <filesystem>
#include <fstream>

#include "engine/formats/files.h"
#include "engine/formats/new_file.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

[[noreturn]] void refuse(std::string_view option, const std::string& path, std::string message,
                         std::string expected) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = std::string(option),
                                           .expected = std::move(expected),
                                           .got = path});
}

/// The kind of file that a path leads to, also through links of /proc to pipes, which have no name.
fs::file_status status_of(const std::string& path, std::error_code& failed) {
  return fs::status(absolute_path(path), failed);
}

bool is_file_to_make(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = status_of(path, failed);
  return !fs::exists(status) || fs::is_regular_file(status);
}

/// What is not a file to write, or another file.
void refuse_others(const std::string& path, std::string_view option, std::string_view mark) {
  if (path.empty()) refuse(option, "\"\"", "not a file name", "a path");
  std::error_code failed;
  const fs::file_status status = status_of(path, failed);
  if (status.type() == fs::file_type::none)
    refuse(option, path, "cannot be reached: " + failed.message(), "a file to write");
  if (fs::is_directory(status)) refuse(option, path, "this is a folder", "a file to write");
  if (!fs::is_regular_file(status)) return;
  const std::string target = link_target(path);
  const std::uint64_t bytes = file_size(target);
  const bool is_ours = !mark.empty() && bytes <= most_bytes &&
                       read_file(target, most_bytes).find(mark) != std::string::npos;
  if (!is_ours && (mark.empty() || bytes > 0))
    refuse(option, path, "there is another file of this name", "a new name, or remove the file");
}

}  // namespace

void rewrite_file(const std::string& path, std::string_view content) {
  write_new_file(path, content, path);
}

void check_output(const std::string& path, std::string_view option, std::string_view mark) {
  refuse_others(path, option, mark);
  if (is_file_to_make(path)) NewFile(link_target(path), option).make();
}

void write_output(const std::string& path, std::string_view content, std::string_view option,
                  std::string_view mark) {
  refuse_others(path, option, mark);
  if (is_file_to_make(path)) return write_new_file(link_target(path), content, option);
  std::ofstream out(absolute_path(path), std::ios::binary | std::ios::app);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.flush();
  if (!out) refuse(option, path, "cannot be written", "a file, pipe or device that takes it");
}

}  // namespace tandem::api
