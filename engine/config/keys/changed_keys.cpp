#include "engine/config/keys/changed_keys.h"

#include <map>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

using Values = std::map<std::string, std::string>;
using Kind = ConfigValue::Kind;

void flatten(const ConfigValue& value, const std::string& path, Values& to) {
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const ConfigValue::Member& member : value.members)
    flatten(member.value, prefix + member.key, to);
  for (std::size_t i = 0; i < value.items.size(); ++i)
    flatten(value.items[i], prefix + std::to_string(i), to);
  if (value.kind == Kind::string) to[path] = toml_string(value.text);
  if (value.kind == Kind::boolean) to[path] = value.boolean ? "true" : "false";
  if (value.kind == Kind::integer) to[path] = std::to_string(value.integer);
  if (value.kind == Kind::number) to[path] = toml_number(value.number);
}

}  // namespace

std::map<std::string, std::string> flat_settings(std::string_view text) {
  std::vector<Diagnostic> errors;
  Values values;
  flatten(parse_toml(text, "", errors), "", values);
  return errors.empty() ? values : Values();
}

std::vector<std::string> changed_keys(std::string_view before, std::string_view now) {
  std::vector<Diagnostic> errors;
  Values then, is;
  flatten(parse_toml(before, "", errors), "", then);
  flatten(parse_toml(now, "", errors), "", is);
  if (!errors.empty()) return {};
  Values all = then;
  all.insert(is.begin(), is.end());
  std::vector<std::string> lines;
  for (const auto& [key, value] : all) {
    const auto text = [&name = key](const Values& values) {
      const auto found = values.find(name);
      return found == values.end() ? std::string("not set") : found->second;
    };
    if (text(then) != text(is)) lines.push_back(key + ": " + text(then) + ", now " + text(is));
  }
  return lines;
}

}  // namespace tandem
