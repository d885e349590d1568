#include "placement/selectors/policy_schema.h"

#include <set>

#include "placement/device_use.h"
#include "placement/policy_keys.h"
#include "placement/selectors/siblings.h"

namespace tandem {

std::vector<std::string> suggested_selectors(const std::vector<NameRow>& rows) {
  std::vector<std::string> modules = {"**"}, names;
  std::set<std::string> known = {"**"};
  const auto add = [&](std::string selector, std::vector<std::string>& to) {
    if (known.insert(selector).second) to.push_back(std::move(selector));
  };
  for (const NameRow& row : rows) {
    const std::string selector = selector_part(row.path);
    for (std::size_t dot = selector.find('.'); dot != std::string::npos;
         dot = selector.find('.', dot + 1))
      add(selector.substr(0, dot) + ".**", modules);
    add(selector, names);
  }
  modules.insert(modules.end(), names.begin(), names.end());
  return modules;
}

std::string policy_json_schema(const std::vector<NameRow>& rows) {
  SchemaSuggestions suggestions;
  if (!rows.empty()) {
    std::set<std::string> types;
    for (const NameRow& row : rows) {
      if (row.kind == NameKind::in_model) types.insert(row.op);
    }
    suggestions["op"].assign(types.begin(), types.end());
    for (const char* key : {"at", "after", "before"}) suggestions[key] = suggested_selectors(rows);
  }
  for (const char* key : {"on", "run", "param", "state"}) suggestions[key] = known_names();
  return config_json_schema(policy_keys(), suggestions);
}

}  // namespace tandem
