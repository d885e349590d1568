#include "api/commands/page/attribute_keys.h"

#include "placement/policy_keys.h"

namespace tandem::api {

PageJson attributes_json(const PageJson& devices) {
  PageJson names = PageJson::array(), list = PageJson::array();
  for (const PageJson& device : devices) names.push_back(device["name"]);
  for (const char* key :
       {"on", "run", "param", "state", "acts", "lookahead", "ship", "cache", "shard"}) {
    const KeyInfo* info = policy_keys().find(std::string("rules[].") + key);
    const std::string_view name = key;
    const bool is_device = name == "on" || name == "run" || name == "param" || name == "state";
    PageJson values;
    if (is_device) {
      values = names;
    } else if (info != nullptr && !info->allowed.empty()) {
      values = PageJson::array();
      const std::string words(info->allowed);
      for (std::size_t start = 0; start < words.size();) {
        const std::size_t end = std::min(words.find('|', start), words.size());
        values.push_back(words.substr(start, end - start));
        start = end + 1;
      }
    }
    list.push_back({{"key", key},
                    {"values", values},
                    {"help", info == nullptr ? std::string() : std::string(info->help)}});
  }
  return list;
}

}  // namespace tandem::api
