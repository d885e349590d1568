// Where the files of a run are after its project was moved: in the same place relative to the run.
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
  /// For a run with this start record and whose directory is `run_dir` now.
  MovedPaths(const StartRecord& started, const std::string& run_dir);

  /// Where the file at this absolute path is now. One that train.toml names by a relative path is
  /// looked for next to the moved run first, any other one of the project only where nothing is at
  /// its path. The path itself where neither is there.
  std::string now(const std::string& path) const;
  /// A message about a project that was moved together with its run; "" where nothing was moved.
  std::string text() const;

 private:
  bool is_of_project(const std::string& path) const;
  bool was_relative(const std::string& path) const;

  std::string run_then_, config_then_, project_then_;
  std::vector<std::string> runs_now_;  // the directory as it was named, and without links
  std::set<std::string> relative_;     // named so in train.toml, made absolute at the start
};

/// For the run directory that holds a file train.resolved.toml; for any other file nothing was
/// moved.
MovedPaths moved_paths_of(const std::string& config_file);

}  // namespace tandem
