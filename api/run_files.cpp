#include "api/run_files.h"

#include <filesystem>

#include "api/paths.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

[[noreturn]] void fail(const std::string& file, std::string message, std::string fix) {
  Diagnostic d;
  d.file = file;
  d.message = std::move(message);
  d.fix = std::move(fix);
  throw Error(ErrorKind::usage, std::move(d));
}

[[noreturn]] void refuse_broken(const std::string& folder,
                                const std::vector<std::string>& messages) {
  std::vector<Diagnostic> problems;
  for (const std::string& message : messages) {
    problems.push_back({.message = message,
                        .file = folder,
                        .fix =
                            "take a whole copy of the run directory; or `tandem train --resume`, "
                            "which sets it aside and trains again from the beginning"});
  }
  throw Error(ErrorKind::data, std::move(problems));
}

std::string chosen_name(const std::string& folder, const std::string& which) {
  if (which == "best") {
    const std::string pointer = folder + "/best";
    if (!path_exists(pointer))
      fail(folder, "no best checkpoint", "set eval.best, or choose \"latest\"");
    std::string name = read_file(pointer, 4096);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  }
  if (which.starts_with("step-")) return which;
  if (!which.empty() && which.find_first_not_of("0123456789") == std::string::npos &&
      which.size() < 19) {
    return checkpoint_name(std::stoull(which));
  }
  fail(folder, "\"" + which + "\" is not a checkpoint", "give \"latest\", \"best\" or a step");
}

}  // namespace

FoundCheckpoint find_checkpoint(const std::string& run_or_checkpoint, const std::string& which) {
  FoundCheckpoint found;
  const std::filesystem::path path = absolute_path(run_or_checkpoint);
  if (path_exists((path / "manifest.json").string())) {
    found.path = path.string();
    found.run_dir = path.parent_path().parent_path().string();
    found.content = read_checkpoint(found.path);
    return found;
  }
  const std::string folder = (path / "checkpoints").string();
  found.run_dir = path.string();
  if (!is_directory(folder)) {
    fail(run_or_checkpoint, "neither a run directory nor a checkpoint",
         "name a directory that `tandem train` has written");
  }
  if (which.empty() || which == "latest") {
    std::optional<CheckpointContent> newest =
        newest_checkpoint(folder, found.warnings, &found.path);
    if (!newest && !found.warnings.empty()) refuse_broken(folder, found.warnings);
    if (!newest) fail(folder, "there is no checkpoint yet", "train first");
    found.content = std::move(*newest);
    return found;
  }
  found.path = folder + "/" + chosen_name(folder, which);
  if (!is_directory(found.path)) {
    std::string names;
    for (const std::string& name : list_checkpoints(folder))
      names += (names.empty() ? "" : ", ") + name;
    fail(found.path, "there is no such checkpoint", "there are: " + names);
  }
  found.content = read_checkpoint(found.path);
  return found;
}

}  // namespace tandem::api
