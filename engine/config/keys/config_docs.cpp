// What people read of the table of keys: lists, the page in docs/, explanations.
#include <fmt/format.h>

#include <algorithm>

#include "engine/config/keys/config_keys.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

std::string help_with_values(const KeyInfo& key) {
  std::string text(key.help);
  if (!key.same_as.empty()) text += fmt::format("; its keys are those of `{}`", key.same_as);
  if (!key.allowed.empty()) text += fmt::format(": {}", listed_words(key));
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
  if (!key->allowed.empty()) text += fmt::format("  values: {}\n", listed_words(*key));
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

}  // namespace tandem
