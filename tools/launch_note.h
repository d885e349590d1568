// What the ranks of `tandem launch` tell the process that started them, by a file that an
// environment variable names.
#pragma once

#include <string>

namespace tandem::tool {

/// The file: made with the object and gone with it; the variable is set for processes that are
/// started meanwhile.
class LaunchNote {
 public:
  LaunchNote();
  ~LaunchNote();
  LaunchNote(const LaunchNote&) = delete;
  LaunchNote& operator=(const LaunchNote&) = delete;

  /// Forgets what ranks have told before.
  void clear() const;
  /// The run directory that they train in; "" before there is one.
  std::string run_dir() const;
  /// Whether they have saved because of a wish to end.
  bool has_saved() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whether so many ranks take signals as wishes; of no file ("") that is taken for granted. May be
/// called in a signal handler.
bool are_ranks_up(const char* path, int ranks);

/// Whether a launch has started this process.
bool is_launched();

// Of a rank; nothing where no launch has started it.
void note_signals_are_caught();
void note_run_dir(const std::string& run_dir);
void note_saved();

}  // namespace tandem::tool
