// The configuration that a run goes on with: that of its train.toml, under the command lines that
// started and resumed it, under the new one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/training/config/config_value.h"
#include "engine/training/start/moved_paths.h"
#include "engine/training/start/start_record.h"

namespace tandem {

/// Lays the keys of earlier command lines over the tree of a train.toml. Paths that were relative
/// to the folder of then become absolute.
void lay_over(ConfigValue& tree, const StartRecord& started, std::vector<Diagnostic>& errors);

/// As read_run_config. `moved`: where absolute paths of earlier command lines lie now.
RunConfig read_resumed_config(const std::string& path, const StartRecord& started,
                              const MovedPaths& moved, const std::vector<std::string>& overrides);

/// What the record says by itself: its train.toml under its command lines. Nothing of a guessed
/// run, of one that goes by its resolved configuration, and where this version refuses it.
std::optional<RunConfig> recorded_config(const StartRecord& started, const MovedPaths& moved);

/// The record without `steps` and `epochs` of its command lines.
StartRecord without_lengths(StartRecord started);

/// What the keys of a run's directory say, also where others are wrong.
struct NamedRun {
  std::string name;
  std::string run_dir;  // absolute, or ""
};
NamedRun named_run(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace tandem
