#include "tools/launch_note.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace tandem::tool {
namespace {

constexpr const char* note_variable = "TANDEM_LAUNCH_NOTE";
// The file has a line for each rank, then "run PATH", and "saved" at the end of an interrupted
// training.
constexpr std::string_view up_line = "up\n", run_word = "run ", saved_line = "saved\n";

/// Appends by a single write, so that lines of several ranks do not mix.
void append(std::string_view line) {
  const char* const path = std::getenv(note_variable);
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  (void)!write(file, line.data(), line.size());
  close(file);
}

std::vector<std::string> lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  return all;
}

}  // namespace

LaunchNote::LaunchNote() {
  std::error_code none;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(none);
  std::string name =
      ((none ? std::filesystem::path("/tmp") : folder) / "tandem-launch-XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) return;  // not possible: retries then start again, unless a run directory is given
  close(file);
  path_ = name;
  setenv(note_variable, path_.c_str(), 1);
}

LaunchNote::~LaunchNote() {
  if (!path_.empty()) unlink(path_.c_str());
}

void LaunchNote::clear() const {
  if (!path_.empty()) (void)!truncate(path_.c_str(), 0);
}

std::string LaunchNote::run_dir() const {
  std::string found;
  for (const std::string& line : lines(path_)) {
    if (line.starts_with(run_word)) found = line.substr(run_word.size());
  }
  return found;
}

bool LaunchNote::has_saved() const {
  const std::vector<std::string> all = lines(path_);
  return std::find(all.begin(), all.end(), "saved") != all.end();
}

bool are_ranks_up(const char* path, int ranks) {
  if (*path == '\0') return true;
  struct stat now {};
  return stat(path, &now) == 0 && now.st_size >= static_cast<off_t>(up_line.size()) * ranks;
}

bool is_launched() { return std::getenv(note_variable) != nullptr; }

void note_signals_are_caught() { append(up_line); }

void note_saved() { append(saved_line); }

void note_run_dir(const std::string& run_dir) {
  const std::string whole = std::filesystem::absolute(run_dir).string();
  append(std::string(run_word) + whole + '\n');
}

}  // namespace tandem::tool
