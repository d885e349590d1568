// The keys of train.toml and of policy.toml, for `tandem config`.
#include <nlohmann/json.hpp>

#include "engine/training/config/config_keys.h"
#include "placement/policy_keys.h"
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
std::string config_schema(bool policy) { return config_json_schema(table(policy)); }

}  // namespace tandem::api
