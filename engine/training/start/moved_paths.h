// Where the files of a run lie after its project was moved: beside the run as they were then.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace tandem {

struct StartRecord;

class MovedPaths {
 public:
  /// Nothing was moved.
  MovedPaths() = default;
  /// Of a run that was started so and whose directory is `run_dir` now.
  MovedPaths(const StartRecord& started, const std::string& run_dir);

  /// Where the file at this absolute path lies now. One that train.toml names by a relative path is
  /// looked for beside the run first, any other one of the project where nothing is at its path.
  /// The path itself where neither is there.
  std::string now(const std::string& path) const;
  /// What people are told of a project that lies beside the run as it did then; "" where nothing
  /// was moved.
  std::string text() const;

 private:
  bool is_of_project(const std::string& path) const;
  bool was_relative(const std::string& path) const;

  std::string run_then_, config_then_, project_then_;
  std::vector<std::string> runs_now_;  // the directory as it was named, and without links
  std::set<std::string> relative_;     // paths that train.toml names so, absolute then
};

/// Of the run directory that a file train.resolved.toml lies in; of any other file nothing was
/// moved.
MovedPaths moved_paths_of(const std::string& config_file);

}  // namespace tandem
