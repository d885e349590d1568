// What people and editors read of the table of keys: lists, the page in docs/, explanations, the
// schema.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/config/keys/config_keys.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

std::string help_with_values(const KeyInfo& key) {
  std::string text(key.help);
  if (!key.same_as.empty()) text += fmt::format("; its keys are those of `{}`", key.same_as);
  if (!key.allowed.empty()) text += fmt::format(": {}", listed(key.allowed));
  return text;
}

std::string default_text(const KeyInfo& key) {
  std::string_view text = key.fallback;
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  return std::string(text);
}

std::string one_group_of_options(const KeyInfo& key) {  // the section of the page a key belongs to
  const std::size_t end = key.path.find('.');
  const bool whole = end == std::string_view::npos;
  return whole && !(key.type == table_value) && key.path != "model"
             ? ""
             : std::string(key.path.substr(0, end));
}

}  // namespace

// '|' would end a cell.
std::string table_cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string config_keys_text(const KeyTable& table) {
  std::size_t width = 0;
  for (const KeyInfo& key : table.keys) width = std::max(width, key.path.size());
  std::string text;
  for (const KeyInfo& key : table.keys) {
    text += fmt::format("{:{}}  {}", key.path, width, type_text(key.type));
    if (!key.fallback.empty() && key.fallback != "required") {
      text += fmt::format(" [{}]", default_text(key));
    }
    if (key.fallback == "required") text += " (required)";
    text += fmt::format("  {}\n", help_with_values(key));
  }
  return text;
}

std::string config_keys_markdown(const KeyTable& table) {
  std::string text(table.page_head);
  std::string section = "?";
  std::string_view same;  // keys that begin with this are documented elsewhere
  for (const KeyInfo& key : table.keys) {
    if (!same.empty() && key.path.starts_with(same) && key.path != same) continue;
    same = key.same_as.empty() ? "" : key.path;
    const std::string of = one_group_of_options(key);
    if (of != section) {
      section = of;
      text += section.empty() ? fmt::format("\n## {}\n", table.main_title)
                              : fmt::format("\n## {}\n", section);
      text += "\n| key | type | default | meaning |\n|---|---|---|---|\n";
    }
    std::string fallback = default_text(key);
    const bool literal =
        !fallback.empty() && !key.fallback.starts_with('(') && fallback != "required";
    if (literal) fallback = "`" + fallback + "`";
    text += fmt::format("| `{}` | {} | {} | {} |\n", key.path, type_text(key.type),
                        table_cell(fallback), table_cell(help_with_values(key)));
  }
  return text;
}

std::string explain_config_key(std::string_view path, const KeyTable& table) {
  const KeyInfo* key = table.find(path);
  if (!key) {
    std::vector<std::string> names;
    std::string near;
    for (const KeyInfo& known : table.keys) {
      names.emplace_back(known.path);
      if (near.empty() && known.path.substr(known.path.rfind('.') + 1) == path) near = known.path;
    }
    if (near.empty()) near = nearest_name(path, names);
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "unknown key",
                           .path = std::string(path),
                           .fix = did_you_mean(near, "`tandem config keys` lists all", "`")});
  }
  std::string text =
      fmt::format("{}\n  {}\n  type: {}\n", key->path, key->help, type_text(key->type));
  if (key->fallback == "required") {
    text += "  required\n";
  } else if (!key->fallback.empty()) {
    text += fmt::format("  default: {}\n", default_text(*key));
  }
  if (!key->allowed.empty()) text += fmt::format("  values: {}\n", listed(key->allowed));
  if (key->low > -1e300) text += fmt::format("  at least {}\n", key->low);
  if (key->high < 1e300) text += fmt::format("  at most {}\n", key->high);
  const std::string prefix = std::string(key->path);
  for (const KeyInfo& child : table.keys) {
    const std::string_view rest =
        child.path.starts_with(prefix) ? child.path.substr(prefix.size()) : "";
    if (rest.starts_with('.') || rest.starts_with("[].")) {
      text += fmt::format("  {}: {}\n", child.path, child.help);
    }
  }
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

Json schema_of(const KeyTable& table, const KeyInfo* key, const std::string& path);

Json table_schema(const KeyTable& table, const std::string& path) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const KeyInfo& child : table.keys) {
    if (!child.path.starts_with(prefix)) continue;
    const std::string_view rest = child.path.substr(prefix.size());
    if (rest.find_first_of(".[") != std::string_view::npos) continue;
    if (rest == "*") {
      schema["additionalProperties"] = schema_of(table, &child, std::string(child.path));
      continue;
    }
    schema["properties"][std::string(rest)] = schema_of(table, &child, std::string(child.path));
    if (child.fallback == "required") schema["required"].push_back(rest);
  }
  return schema;
}

Json schema_of(const KeyTable& table, const KeyInfo* key, const std::string& path) {
  std::vector<Json> choices;
  if (key->type & boolean_value) choices.push_back({{"type", "boolean"}});
  if (key->type & (integer_value | number_value)) {
    Json number = {{"type", key->type & number_value ? "number" : "integer"}};
    if (key->low > -1e300) number["minimum"] = key->low;
    if (key->high < 1e300) number["maximum"] = key->high;
    choices.push_back(number);
  }
  if (key->type & (string_value | path_value | duration_value | selector_value)) {
    Json text = {{"type", "string"}};
    for (const std::string& word : words_of(key->allowed)) text["enum"].push_back(word);
    choices.push_back(text);
  }
  if (key->type & table_value) choices.push_back(table_schema(table, path));
  if (key->type & list_value) {
    Json list = {{"type", "array"}};
    const std::string of = key->short_key.empty() ? path : path + "." + std::string(key->short_key);
    for (const KeyInfo& item : table.keys) {
      if (item.path == of + "[]") list["items"] = schema_of(table, &item, of + "[]");
    }
    choices.push_back(list);
  }
  Json schema = choices.size() == 1 ? choices[0] : Json{{"anyOf", choices}};
  schema["description"] = key->help;
  return schema;
}

}  // namespace

std::string config_json_schema(const KeyTable& table) {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", table.file}};
  schema.update(table_schema(table, ""));
  return schema.dump(2) + "\n";
}

}  // namespace tandem
