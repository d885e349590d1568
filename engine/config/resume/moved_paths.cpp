#include "engine/config/resume/moved_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "engine/config/keys/config_value.h"
#include "engine/config/resume/start_record.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::string joined_path(const std::string& folder, const fs::path& relative) {
  std::string path = (fs::path(folder) / relative).lexically_normal();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// The path that is to `to` as `path` is to `from`.
std::string carried_over(const std::string& path, const std::string& from, const std::string& to) {
  return joined_path(to, fs::path(path).lexically_relative(from));
}

void add_texts(const ConfigValue& value, const std::string& folder, std::set<std::string>& to) {
  for (const ConfigValue::Member& member : value.members) add_texts(member.value, folder, to);
  for (const ConfigValue& item : value.items) add_texts(item, folder, to);
  if (value.kind != ConfigValue::Kind::string || value.text.empty() || value.text[0] == '/') return;
  to.insert(joined_path(folder, value.text));
}

bool is_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
}

}  // namespace

MovedPaths::MovedPaths(const StartRecord& started, const std::string& run_dir) {
  const std::string run = normal_path(run_dir);
  std::error_code none;
  const std::string real = fs::weakly_canonical(run, none).string();
  const bool is_same = run == started.run_dir || real == started.run_dir ||
                       fs::equivalent(run, started.run_dir, none);
  if (is_same) return;
  runs_now_ = {run};
  if (!real.empty() && real != run) runs_now_.push_back(real);
  run_then_ = started.run_dir;
  config_then_ = started.config;
  project_then_ = fs::path(started.config).parent_path().string();
  std::vector<Diagnostic> ignored;
  add_texts(parse_toml(started.text, started.config, ignored), project_then_, relative_);
}

bool MovedPaths::was_relative(const std::string& path) const {
  return std::any_of(relative_.begin(), relative_.end(), [&](const std::string& named) {
    return named != project_then_ && is_below(path, named);
  });
}

bool MovedPaths::is_of_project(const std::string& path) const {
  return is_below(path, project_then_) || was_relative(path);
}

std::string MovedPaths::now(const std::string& path) const {
  if (runs_now_.empty() || !is_of_project(path)) return path;
  if (!was_relative(path) && path_exists(path)) return path;
  for (const std::string& run : runs_now_) {
    std::string there = carried_over(path, run_then_, run);
    if (path_exists(there)) return there;
  }
  return path;
}

std::string MovedPaths::text() const {
  for (const std::string& run : runs_now_) {
    const fs::path config = carried_over(config_then_, run_then_, run);
    if (config.string() == config_then_ || !path_exists(config.string())) continue;
    return "the project was moved from " + project_then_ + " to " + config.parent_path().string() +
           ": its files are read there";
  }
  return "";
}

MovedPaths moved_paths_of(const std::string& config_file) {
  const fs::path file = normal_path(config_file);
  if (file.filename() != "train.resolved.toml") return {};
  const std::string run_dir = file.parent_path().string();
  const std::optional<StartRecord> started = read_start_record(run_dir);
  return started ? MovedPaths(*started, run_dir) : MovedPaths();
}

}  // namespace tandem
