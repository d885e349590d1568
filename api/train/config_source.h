// Where a run's configuration comes from: a train.toml, an ONNX file, or a program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/config/resume/resumed_config.h"
#include "engine/config/run_config.h"

namespace tandem::api {

struct ConfigSource {
  std::string path;  // names it and anchors its relative paths
  /// Settings of a program; unset: the file holds them.
  std::optional<ConfigValue> settings = {};

  /// Whether it is guessed from a model.
  bool is_guessed() const;
  /// The text of the train.toml. Throws Error{usage} where there is none.
  std::string read() const;
  RunConfig config(const std::vector<std::string>& overrides) const;
  RunConfig resumed_config(const StartRecord& started, const MovedPaths& moved,
                           const std::vector<std::string>& overrides) const;
  NamedRun named(const std::vector<std::string>& overrides) const;
};

}  // namespace tandem::api
