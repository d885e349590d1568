// Lists and explains the keys of train.toml and of policy.toml, for `tandem config`.
#include <nlohmann/json.hpp>

#include "api/editor_schemas.h"
#include "api/program/keys.h"
#include "api/train/session/session_keys.h"
#include "engine/config/keys/config_keys.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/losses/loss.h"
#include "engine/metrics/metric.h"
#include "engine/optimizers/optimizer.h"
#include "placement/policy_keys.h"
#include "placement/selectors/policy_schema.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

const KeyTable& table(bool policy) { return policy ? policy_keys() : train_keys(); }

/// Adds what holds for a key, or for a key of one kind.
template <class Key>
void add_facts(Json& json, const Key& key) {
  json["type"] = type_text(key.type);
  json["default"] = key.fallback;
  json["allowed"] = key.allowed;
  json["help"] = key.help;
}

Json json_of(const KeyInfo& key, bool policy) {
  Json json = {{"key", key.path}};
  add_facts(json, key);
  for (const auto& [spelling, word] : key.spellings)
    json["spellings"][std::string(spelling)] = word;
  if (!policy) json["session"] = session_honours(key.path);
  for (const KeyOfKind& of : key.kinds) add_facts(json["kinds"][std::string(of.kind)], of);
  return json;
}

/// What the kinds of a list are, where that is known.
template <class List>
void add_kinds(Json& json, const char* key, const List& list) {
  for (const auto& kind : list) {
    Json facts = {{"source", kind.source}};
    if constexpr (requires { kind.help; }) facts["help"] = kind.help;
    json[key][std::string(kind.name)] = std::move(facts);
  }
}

}  // namespace

std::string v1::version() { return TANDEM_VERSION; }

std::string config_keys(bool json, bool policy) {
  if (!json) return config_keys_text(table(policy));
  Json facts;
  for (const KeyInfo& key : table(policy).keys) facts["keys"].push_back(json_of(key, policy));
  if (!policy) {
    add_kinds(facts["kinds"], "loss.terms[].kind", all_losses());
    add_kinds(facts["kinds"], "eval.metrics[].kind", all_metrics());
    add_kinds(facts["kinds"], "optimizer.kind", all_optimizers());
  }
  return facts.dump(2);
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
