// Passes notes from the ranks of `tandem launch` to the process that started them, in a file that
// an environment variable names.
#pragma once

#include <string>

namespace tandem::tool {

/// The file, which exists as long as this object; the variable is set for processes that are
/// started meanwhile.
class LaunchNote {
 public:
  LaunchNote();
  ~LaunchNote();
  LaunchNote(const LaunchNote&) = delete;
  LaunchNote& operator=(const LaunchNote&) = delete;

  /// Deletes all earlier notes of ranks.
  void clear() const;
  /// The run directory that they train in; "" before there is one.
  std::string run_dir() const;
  /// Whether the ranks have saved because of a request to end.
  bool has_saved() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whether that many ranks handle signals as requests to end; true where there is no file (""). May
/// be called in a signal handler.
bool are_ranks_up(const char* path, int ranks);

/// Whether `tandem launch` has started this process.
bool is_launched();

// Called by a rank; do nothing where `tandem launch` has not started it.
void note_signals_are_caught();
void note_run_dir(const std::string& run_dir);
void note_saved();

}  // namespace tandem::tool
