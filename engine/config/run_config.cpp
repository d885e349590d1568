#include "engine/config/run_config.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/resume/resumed_config.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"

namespace tandem {

DEFINE_COPIES(OptimizerGroup);
bool OptimizerGroup::operator==(const OptimizerGroup&) const = default;

DEFINE_COPIES(OptimizerConfig);
bool OptimizerConfig::operator==(const OptimizerConfig&) const = default;

DEFINE_COPIES(RunKeys);
bool RunKeys::operator==(const RunKeys&) const = default;

namespace {

/// Adds further mistakes of a file that has some already: paths that lead nowhere. Without other
/// mistakes, the code that opens these files reports more.
void add_missing_files(const RunConfig& config, std::vector<Diagnostic>& errors) {
  const auto look = [&](const Where& where, const std::string& key, const std::string& path) {
    if (path.empty() || path_exists(path)) return;
    Diagnostic& d = errors.emplace_back(at(where, key, "no such file"));
    d.got = path;
  };
  look(config.model.where, "model", config.model.file);
  look({config.file}, "policy", config.policy);
  if (!config.data) return;
  const auto look_at = [&](const std::string& key, const std::vector<ArrayFiles>& all) {
    for (const ArrayFiles& files : all) {
      for (const std::string& path : files.paths) look(files.where, key, path);
    }
  };
  const std::vector<SourceConfig>& sources = config.data->sources;
  for (std::size_t i = 0; i < sources.size(); ++i)
    look_at("data.train.sources." + std::to_string(i) + ".files", sources[i].files);
  if (sources.empty()) look_at("data.train.files", config.data->train.files);
  look_at("data.eval.files", config.data->eval.files);
}

std::string default_name(const std::filesystem::path& file) {
  const bool is_usual = file.stem() == "train" && file.parent_path().has_filename();
  return (is_usual ? file.parent_path().filename() : file.stem()).string();
}

/// What a resumed run knows about its start.
struct Resumed {
  const StartRecord& started;
  const MovedPaths& moved;
};

/// `errors`: those found while the tree was read.
RunConfig resolved(ConfigValue tree, std::vector<Diagnostic> errors, const std::string& path,
                   const std::vector<std::string>& overrides, bool is_file,
                   const Resumed* resumed = nullptr) {
  if (resumed != nullptr) lay_over(tree, resumed->started, errors);
  for (const std::string& item : overrides) apply_override(tree, item, errors);
  check_config(tree, errors);

  namespace fs = std::filesystem;
  RunConfig config;
  const fs::path file = normal_path(path);
  const std::string folder = file.parent_path().string();
  const MovedPaths moved = resumed != nullptr ? resumed->moved : moved_paths_of(file.string());
  config.file = file.string();
  config.name = default_name(file);
  read_keys(TableReader(&tree, "", folder, errors, &config.notes, &moved),
            [&](KeyVisitor& v) { visit(v, config); });

  if (!errors.empty()) {
    if (is_file) add_missing_files(config, errors);
    std::stable_sort(errors.begin(), errors.end(), [](const Diagnostic& a, const Diagnostic& b) {
      const auto key = [](const Diagnostic& d) {
        return std::tuple(d.file == command_line, d.line, d.column);
      };
      return key(a) < key(b);
    });
    throw Error(ErrorKind::usage, std::move(errors));
  }
  return config;
}

RunConfig parsed(std::string_view text, const std::string& path,
                 const std::vector<std::string>& overrides, bool is_file,
                 const Resumed* resumed = nullptr) {
  std::vector<Diagnostic> errors;
  ConfigValue tree = parse_toml(text, path, errors);
  if (!errors.empty() && tree.members.empty()) throw Error(ErrorKind::usage, std::move(errors));
  return resolved(std::move(tree), std::move(errors), path, overrides, is_file, resumed);
}

}  // namespace

RunConfig parse_run_config(std::string_view text, const std::string& path,
                           const std::vector<std::string>& overrides) {
  return parsed(text, path, overrides, false);
}

RunConfig run_config_of(ConfigValue settings, const std::string& path,
                        const std::vector<std::string>& overrides) {
  return resolved(std::move(settings), {}, path, overrides, false);
}

std::string to_toml(const RunConfig& config) {
  RunConfig copy = config;  // visits may change what they visit
  return write_keys([&](KeyVisitor& v) { visit(v, copy); });
}

namespace {

/// The text of a train.toml. Throws Error{usage} where there is none.
std::string text_of_config(const std::string& path) {
  const auto refuse = [&](const char* message, const char* fix) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = message, .file = path, .expected = "a train.toml", .fix = fix});
  };
  constexpr std::uint64_t largest_file = 16 << 20;
  std::error_code ignored;
  if (is_directory(path)) refuse("this is a folder", "");
  if (!path_exists(path)) refuse("no such file", "");
  if (!std::filesystem::is_regular_file(path, ignored))  // a pipe might never end
    refuse("this is not a regular file", "store it in one first");
  if (file_size(path) > largest_file) refuse("the file is too large", "");
  return read_file(path, largest_file);
}

}  // namespace

RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  return parsed(text_of_config(path), path, overrides, true);
}

RunConfig read_resumed_config(const std::string& path, const StartRecord& started,
                              const MovedPaths& moved, const std::vector<std::string>& overrides) {
  const Resumed resumed{started, moved};
  return parsed(text_of_config(path), path, overrides, true, &resumed);
}

RunConfig parse_resumed_config(std::string_view text, const std::string& path,
                               const StartRecord& started, const MovedPaths& moved,
                               const std::vector<std::string>& overrides) {
  const Resumed resumed{started, moved};
  return parsed(text, path, overrides, false, &resumed);
}

std::optional<RunConfig> recorded_config(const StartRecord& started, const MovedPaths& moved) {
  if (started.text.empty()) return std::nullopt;
  const Resumed resumed{started, moved};
  try {
    return parsed(started.text, started.config, {}, false, &resumed);
  } catch (const Error&) {
    return std::nullopt;
  }
}

NamedRun named_run(const std::string& path, const std::vector<std::string>& overrides) {
  return named_run(text_of_config(path), path, overrides);
}

NamedRun named_run(std::string_view text, const std::string& path,
                   const std::vector<std::string>& overrides) {
  std::vector<Diagnostic> ignored;
  ConfigValue tree = parse_toml(text, path, ignored);
  for (const std::string& item : overrides) apply_override(tree, item, ignored);
  const std::filesystem::path file = normal_path(path);
  const std::string folder = file.parent_path().string();
  NamedRun named{.name = default_name(file)};
  const auto text_at = [&](const char* key) -> const ConfigValue* {
    const ConfigValue* const found = tree.find(key);
    const bool is_text = found != nullptr && found->kind == ConfigValue::Kind::string;
    return is_text && !found->text.empty() ? found : nullptr;
  };
  if (const ConfigValue* const name = text_at("name")) named.name = name->text;
  if (const ConfigValue* const run_dir = text_at("run_dir"))
    named.run_dir = TableReader(&tree, "", folder, ignored).resolve(*run_dir);
  return named;
}

}  // namespace tandem
