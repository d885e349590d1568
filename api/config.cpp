// The keys of train.toml, for `tandem config`.
#include <nlohmann/json.hpp>

#include "engine/training/config/config_keys.h"
#include "tandem/tandem.h"

namespace tandem::api {

std::string version() { return TANDEM_VERSION; }

std::string config_keys(bool json) {
  if (!json) return tandem::config_keys_text();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KeyInfo& key : tandem::config_keys()) {
    list.push_back({{"key", key.path},
                    {"type", type_text(key.type)},
                    {"default", key.fallback},
                    {"allowed", key.allowed},
                    {"later", key.later},
                    {"help", key.help}});
  }
  return nlohmann::ordered_json{{"keys", list}}.dump(2);
}

std::string config_explain(const std::string& key) { return explain_config_key(key); }
std::string config_schema() { return config_json_schema(); }

}  // namespace tandem::api
