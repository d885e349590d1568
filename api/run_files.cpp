#include "api/run_files.h"

#include <charconv>
#include <filesystem>

#include "engine/formats/files.h"
#include "engine/formats/json_file.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

[[noreturn]] void fail(const std::string& file, std::string message, std::string fix) {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = std::move(message), .file = file, .fix = std::move(fix)});
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

/// The checkpoint's name in the file `checkpoints/best`, which training writes.
std::string best_name(const std::string& pointer) {
  constexpr std::size_t longest = 64;
  std::string name = read_file(pointer, 4096);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  if (checkpoint_step(name)) return name;
  Diagnostic d;
  d.file = pointer;
  d.message = "does not name a checkpoint";
  d.expected = "a name like " + checkpoint_name(1000);
  d.got = name.empty() ? "an empty file" : "\"" + name.substr(0, longest) + "\"";
  d.fix =
      "choose \"latest\" or a step (--checkpoint); `tandem train --resume` writes this file again";
  throw Error(ErrorKind::data, std::move(d));
}

std::string chosen_name(const std::string& folder, const std::string& which) {
  if (which == "best") {
    const std::string pointer = folder + "/best";
    if (!path_exists(pointer))
      fail(folder, "no best checkpoint",
           "train with eval.best = \"loss\" or a metric, or choose \"latest\"");
    return best_name(pointer);
  }
  if (checkpoint_step(which)) return which;
  std::uint64_t step = 0;
  const char* const end = which.data() + which.size();
  const auto [stop, error] = std::from_chars(which.data(), end, step);
  if (!which.empty() && error == std::errc() && stop == end) return checkpoint_name(step);
  fail(folder, "\"" + which + "\" is not a checkpoint", "give \"latest\", \"best\" or a step");
}

/// Reads the checkpoint; where it is damaged, the error names the other ones.
CheckpointContent read_chosen(const std::string& folder, const std::string& path) {
  try {
    return read_checkpoint(path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    std::vector<std::string> others = list_checkpoints(folder);
    std::erase(others, std::filesystem::path(path).filename().string());
    std::vector<Diagnostic> problems = error.diagnostics();
    for (Diagnostic& d : problems) {
      if (!d.fix.empty()) continue;
      d.fix = others.empty() ? "take a whole copy of the run directory"
                             : "--checkpoint takes another one: " + joined(others);
    }
    throw Error(ErrorKind::data, std::move(problems));
  }
}

}  // namespace

FoundCheckpoint find_checkpoint(const std::string& run_or_checkpoint, const std::string& which) {
  FoundCheckpoint found;
  std::filesystem::path path = normal_path(run_or_checkpoint);
  if (!path.has_filename()) path = path.parent_path();  // the path ended in a slash
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
    fail(found.path, "there is no such checkpoint",
         "there are: " + joined(list_checkpoints(folder)));
  }
  found.content = read_chosen(folder, found.path);
  return found;
}

RecordedPlacing recorded_placing(const std::string& run_dir) {
  const std::string path = run_dir + "/placement.json";
  RecordedPlacing recorded;
  if (!path_exists(path)) return recorded;
  // Large models have many nodes, so the limits are high.
  const JsonLimits limits{
      .bytes = std::uint64_t{1} << 30, .values = std::size_t{1} << 24, .depth = 16};
  const JsonFile file(
      {.file = path,
       .kind = ErrorKind::usage,
       .fix = "take a whole copy of the run directory; or remove this file, and give again what "
              "--place and --device the training had"},
      read_file(path, limits.bytes), limits);
  const JsonItem arguments = file.root().at("arguments");
  arguments.object();
  const auto list = [&](const char* name) {
    std::vector<std::string> texts;
    const std::optional<JsonItem> found = arguments.find(name);
    if (!found) return texts;
    for (const JsonItem& text : found->list()) texts.push_back(text.any_text());
    return texts;
  };
  recorded.place = list("place");
  recorded.devices = list("device");
  return recorded;
}

}  // namespace tandem::api
