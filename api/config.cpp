// Lists and explains the keys of train.toml and of policy.toml, for `tandem config`.
#include <nlohmann/json.hpp>

#include "api/editor_schemas.h"
#include "engine/config/keys/config_keys.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "placement/policy_keys.h"
#include "placement/report/policy_schema.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

const KeyTable& table(bool policy) { return policy ? policy_keys() : train_keys(); }

}  // namespace

std::string version() { return TANDEM_VERSION; }

std::string config_keys(bool json, bool policy) {
  if (!json) return config_keys_text(table(policy));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KeyInfo& key : table(policy).keys) {
    list.push_back({{"key", key.path},
                    {"type", type_text(key.type)},
                    {"default", key.fallback},
                    {"allowed", key.allowed},
                    {"help", key.help}});
  }
  return nlohmann::ordered_json{{"keys", list}}.dump(2);
}

std::string config_explain(const std::string& key, bool policy) {
  return explain_config_key(key, table(policy));
}
std::string config_schema(bool policy) {
  return policy ? policy_json_schema() : config_json_schema();
}

Report config_install_schemas(const std::string& folder) {
  const std::vector<std::string> files = write_editor_schemas(normal_path(folder), {});
  Report report;
  for (const std::string& file : files) report.text += "wrote      " + file + "\n";
  report.text += "train.toml   begins with the line: " + std::string(train_schema_line) +
                 "policy.toml  begins with the line: " + std::string(policy_schema_line);
  report.json = nlohmann::ordered_json{{"files", files}}.dump(
      2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return report;
}

// Arrays may also be called data, loss or seed: if such a word is followed by a file, it names an
// array.
bool is_setting(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos || path_exists(argument)) return false;
  const std::string key = argument.substr(0, equals);
  const KeyInfo* const info = train_keys().find(key);
  if (info == nullptr || key.find('.') != std::string::npos) return info != nullptr;
  constexpr unsigned plain =
      boolean_value | integer_value | number_value | string_value | duration_value;
  if (info->type & path_value) return true;
  return (info->type & plain) && !path_exists(argument.substr(equals + 1));
}

}  // namespace tandem::api
