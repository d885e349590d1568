// Options that several subcommands take.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/program/keys.h"
#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {

/// "batch=32". Throws Error{usage}.
std::pair<std::string, std::int64_t> parse_binding(const std::string& text);

/// Options shared by `eval` and `predict`: the run, keys, --checkpoint, --weights, --config, and
/// those below.
void add_trained(CLI::App& command, api::TrainedOptions& options, std::string& run);

/// Moves keys that follow the values of an option to the overrides: `--data a.npz
/// model.file=m.onnx`.
inline void take_settings(std::vector<std::string>& values, std::vector<std::string>& overrides) {
  for (const std::string& value : values) {
    if (api::is_setting(value)) overrides.push_back(value);
  }
  std::erase_if(values, api::is_setting);
}

/// `--weights`.
void add_weights(CLI::App& command, std::string& weights);

/// `--device`, repeatable.
inline void add_device(CLI::App& command, std::vector<std::string>& devices) {
  command
      .add_option("--device", devices,
                  "What a device name means: gpu=emulated:0,memory=2GiB,bandwidth=25GB/s")
      ->type_name("NAME=USE")
      ->allow_extra_args(false);
}

/// `--place` and `--device`, each repeatable.
inline void add_placing(CLI::App& command, std::vector<std::string>& place,
                        std::vector<std::string>& devices) {
  command
      .add_option("--place", place, "A rule over the policy's: '{ at = \"fc1\", on = \"cpu\" }'")
      ->type_name("RULE")
      ->allow_extra_args(false);
  add_device(command, devices);
}

}  // namespace tandem::tool
