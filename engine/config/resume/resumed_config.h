// The configuration of a resumed run: its train.toml, overridden by the command lines that started
// and resumed it, and then by the new one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/keys/config_value.h"
#include "engine/config/resume/moved_paths.h"
#include "engine/config/resume/start_record.h"

namespace tandem {

/// Lays the keys of earlier command lines over the tree of a train.toml. Paths that were relative
/// to the current folder at that time become absolute.
void lay_over(ConfigValue& tree, const StartRecord& started, std::vector<Diagnostic>& errors);

/// Like read_run_config. `moved`: where absolute paths of earlier command lines are now.
RunConfig read_resumed_config(const std::string& path, const StartRecord& started,
                              const MovedPaths& moved, const std::vector<std::string>& overrides);

/// Like read_resumed_config, from the text of a configuration; `path` names it and anchors its
/// relative paths.
RunConfig parse_resumed_config(std::string_view text, const std::string& path,
                               const StartRecord& started, const MovedPaths& moved,
                               const std::vector<std::string>& overrides);

/// The configuration that the record itself gives: its train.toml with its command lines. Nothing
/// for a guessed run, for one that uses its resolved configuration, and where this version refuses
/// it.
std::optional<RunConfig> recorded_config(const StartRecord& started, const MovedPaths& moved);

/// The record without `steps` and `epochs` of its command lines.
StartRecord without_lengths(StartRecord started);

/// The values of the keys for a run's directory, read even where others are wrong.
struct NamedRun {
  std::string name;
  std::string run_dir;  // absolute, or ""
};
NamedRun named_run(const std::string& path, const std::vector<std::string>& overrides);
NamedRun named_run(std::string_view text, const std::string& path,
                   const std::vector<std::string>& overrides);

}  // namespace tandem
