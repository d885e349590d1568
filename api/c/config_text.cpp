#include "api/c/config_text.h"

#include <utility>

#include "api/train/config_settings.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/run_config.h"
#include "engine/formats/paths.h"

namespace tandem::c_library {
namespace {

ConfigValue parsed(const std::string& text, const std::string& path) {
  std::vector<Diagnostic> problems;
  ConfigValue tree = parse_toml(text, path, problems);
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return tree;
}

/// KEY=VALUE for each key below a table.
void add_settings(const ConfigValue& table, const std::string& above,
                  std::vector<std::string>& settings) {
  for (const ConfigValue::Member& member : table.members) {
    const std::string key = above + toml_key(member.key);
    if (member.value.kind == ConfigValue::Kind::table) {
      add_settings(member.value, key + ".", settings);
      continue;
    }
    ConfigValue line;
    line.add("value", member.value);
    std::string text = api::toml_of(line);  // "value = 0.01\n"
    text.pop_back();
    settings.push_back(key + "=" + text.substr(std::string("value = ").size()));
  }
}

}  // namespace

api::TrainConfig train_config_of(const std::string& text, const std::string& path,
                                 const std::vector<std::string>& overrides) {
  const std::string file = normal_path(path);
  parse_run_config(text, file, overrides);  // throws everything that is wrong
  api::TrainConfig config = api::config_of(parsed(text, file));
  config.file = file;
  return config;
}

std::vector<std::string> session_settings_of(const std::string& text) {
  std::vector<std::string> settings;
  add_settings(parsed(text, "train.toml"), "", settings);
  return settings;
}

}  // namespace tandem::c_library
