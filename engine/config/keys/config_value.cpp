#include "engine/config/keys/config_value.h"

// The library asserts, before it reports it, that a key begins as one: "[=" would abort.
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "engine/config/keys/config_check.h"
#include "engine/config/keys/open_bracket.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

constexpr std::string_view first_command = "command line that started the run",
                           later_command = "command line of resume ";

Where where_of(const toml::source_region& region, const std::string& file) {
  return {file, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

std::string interpolate(std::string_view text, const Where& where,
                        std::vector<Diagnostic>& errors) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "$${") {
      result += "${";
      i += 2;
      continue;
    }
    if (text.substr(i, 2) != "${") {
      result += text[i];
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      errors.push_back(at(where, "", "a ${ without its }"));
      return result;
    }
    const std::string_view inside = text.substr(i + 2, end - i - 2);
    const std::size_t separator = inside.find(":-");
    const std::string name(inside.substr(0, separator));
    const char* value = std::getenv(name.c_str());
    if (value && *value) {
      result += value;
    } else if (separator != std::string_view::npos) {
      result += inside.substr(separator + 2);
    } else if (value) {
      // set to nothing on purpose
    } else {
      Diagnostic d = at(where, "", "the environment variable " + name + " is not set");
      d.fix = "set it, or write ${" + name + ":-default}";
      errors.push_back(std::move(d));
    }
    i = end;
  }
  return result;
}

/// The diagnostic for text that cannot be read. A number that no float64 holds is still valid TOML.
Diagnostic toml_problem(const toml::parse_error& error, const Where& where,
                        const std::string& path = "") {
  const std::string text(error.description());
  constexpr std::string_view start = "Error while parsing floating-point: '";
  const bool is_too_large =
      text.starts_with(start) && (text.ends_with("' could not be interpreted as a value") ||
                                  text.ends_with("' is not representable in 64 bits"));
  if (!is_too_large) return at(where, path, "not TOML: " + text);
  return at(where, path, "a number is out of range", "at most 1.8e308",
            text.substr(start.size(), text.rfind('\'') - start.size()));
}

struct Converter {
  std::string file;
  std::vector<Diagnostic>& errors;

  ConfigValue convert(const toml::node& node) const {
    ConfigValue value;
    value.where = where_of(node.source(), file);
    if (const auto* table = node.as_table()) {
      value.kind = Kind::table;
      for (const auto& [key, child] : *table) {
        value.members.push_back(
            {std::string(key.str()), where_of(key.source(), file), convert(child)});
      }
      std::stable_sort(value.members.begin(), value.members.end(),
                       [](const auto& a, const auto& b) {
                         return std::pair(a.where.line, a.where.column) <
                                std::pair(b.where.line, b.where.column);
                       });
    } else if (const auto* list = node.as_array()) {
      value.kind = Kind::list;
      for (const toml::node& item : *list) value.items.push_back(convert(item));
    } else if (const auto* text = node.as_string()) {
      value.kind = Kind::string;
      value.text = interpolate(text->get(), value.where, errors);
    } else if (const auto* integer = node.as_integer()) {
      value.kind = Kind::integer;
      value.integer = integer->get();
      value.number = static_cast<double>(value.integer);
    } else if (const auto* number = node.as_floating_point()) {
      value.kind = Kind::number;
      value.number = number->get();
    } else if (const auto* boolean = node.as_boolean()) {
      value.kind = Kind::boolean;
      value.boolean = boolean->get();
    } else {
      value.kind = Kind::other;
    }
    return value;
  }
};

/// Whether the text of an override can only be meant as TOML: a list, a table or a number for a key
/// that takes no text, or what looks like more than a path in braces.
bool is_meant_as_toml(std::string_view written, const KeyInfo* key) {
  const std::size_t first = written.find_first_not_of(" \t");
  if (first == std::string_view::npos) return false;
  const char c = written[first];
  const bool opens = c == '[' || c == '{';
  constexpr unsigned texts = string_value | path_value | duration_value | selector_value;
  if (key == nullptr) return opens;
  if (key->type & texts) {
    return opens && (key->type & (list_value | table_value)) &&
           written.find_first_of("=\"'") != std::string_view::npos;
  }
  return opens || c == '+' || c == '-' || (c >= '0' && c <= '9');
}

// The parts of `a."x.y".0=…`, and the position of the `=` (npos without one). Quoted parts are as
// toml_key writes them: \" and \\ mean " and \.
std::pair<std::vector<std::string>, std::size_t> split_path(std::string_view text) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = quoted && text[i] == '\\' && i + 1 < text.size() &&
                         (text[i + 1] == '"' || text[i + 1] == '\\');
    if (escaped) {
      parts.back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == '=' && !quoted) {
      return {std::move(parts), i};
    } else if (text[i] == '.' && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  return {std::move(parts), std::string_view::npos};
}

}  // namespace

const ConfigValue* ConfigValue::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

ConfigValue* ConfigValue::find(std::string_view key) {
  return const_cast<ConfigValue*>(std::as_const(*this).find(key));
}

void ConfigValue::add(std::string key, ConfigValue value) {
  members.push_back({std::move(key), value.where, std::move(value)});
}

ConfigValue text_setting(std::string text) {
  return {.kind = Kind::string, .text = std::move(text), .where = Where{std::string(command_line)}};
}

ConfigValue integer_setting(std::int64_t integer) {
  return {.kind = Kind::integer,
          .integer = integer,
          .number = static_cast<double>(integer),
          .where = Where{std::string(command_line)}};
}

ConfigValue table_setting() {
  return {.kind = Kind::table, .where = Where{std::string(command_line)}};
}

std::string describe(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::invalid:
      return "?";
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return "integer " + std::to_string(value.integer);
    case Kind::number:
      return "number " + toml_number(value.number);
    case Kind::string:
      return "string " + toml_string(value.text);
    case Kind::table:
      return "table";
    case Kind::list:
      return "list";
    case Kind::other:
      return "date or time";
  }
  return "?";
}

std::string where_text(const Where& where) {
  if (where.file == command_line || is_earlier_command_line(where.file)) return "the " + where.file;
  std::string text = where.file;
  for (const int number : {where.line, where.column}) {
    if (number > 0) text += ":" + std::to_string(number);
  }
  return text;
}

/// The line of a dotted key of more parts than a parser that recurses over them can take, or 0.
int line_of_endless_key(std::string_view text) {
  constexpr int most_parts = 1000;
  int line = 1, dots = 0;
  for (const char c : text) {
    if (c == '.') {
      if (++dots > most_parts) return line;
    } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
      dots = 0;
      if (c == '\n') ++line;
    }
  }
  return 0;
}

ConfigValue parse_toml(std::string_view text, const std::string& file,
                       std::vector<Diagnostic>& errors) {
  if (const int line = line_of_endless_key(text)) {
    errors.push_back(at(Where{file, line, 1}, "", "more than 1000 dots in a row: not a key"));
    return {};
  }
  const toml::parse_result result = toml::parse(text, file);
  if (!result) {
    const Where where = where_of(result.error().source(), file);
    Diagnostic& d = errors.emplace_back(toml_problem(result.error(), where));
    if (const auto open = open_bracket(text, where.line, where.column)) {
      const std::string close = "close the " + std::string(1, open->bracket) + " of line " +
                                std::to_string(open->line) + ", column " +
                                std::to_string(open->column);
      const bool takes_comma = d.message.find("expected comma") != std::string::npos;
      d.fix = takes_comma ? close + ", or write a comma before this" : close;
    }
    return {};
  }
  return Converter{file, errors}.convert(result.table());
}

bool outranks(const Where& one, const Where& other) {
  const auto rank = [](const Where& where) {
    if (where.file == command_line) return std::numeric_limits<int>::max();
    if (where.file == first_command) return 1;
    if (!where.file.starts_with(later_command)) return 0;
    int number = 0;
    const char* const end = where.file.data() + where.file.size();
    std::from_chars(where.file.data() + later_command.size(), end, number);
    return 1 + number;
  };
  return rank(one) > rank(other);
}

std::string earlier_command_line(std::size_t number) {
  return number == 0 ? std::string(first_command)
                     : std::string(later_command) + std::to_string(number);
}

bool is_earlier_command_line(std::string_view source) {
  return source == first_command || source.starts_with(later_command);
}

void apply_override(ConfigValue& root, const std::string& text, std::vector<Diagnostic>& errors,
                    std::string_view source) {
  const Where where{std::string(source)};
  auto [parts, equals] = split_path(text);
  if (equals == std::string::npos || equals == 0 || line_of_endless_key(text) != 0) {
    errors.push_back(at(where, text.substr(0, 200), "not a setting", "KEY=VALUE"));
    return;
  }
  std::string path = text.substr(0, equals), written = text.substr(equals + 1);
  if (path.ends_with(' ')) {  // a line as files have it
    path = trimmed(path);
    written = trimmed(written);
    parts.back() = trimmed(parts.back());
  }

  ConfigValue value;
  const toml::parse_result parsed = toml::parse("value = " + written);
  const bool is_toml = parsed && parsed.table().size() == 1 && parsed.table().get("value");
  if (is_toml) {
    value = Converter{where.file, errors}.convert(*parsed.table().get("value"));
  }
  const KeyInfo* info = train_keys().find(path);
  if (!parsed && is_meant_as_toml(written, info)) {
    Diagnostic d = toml_problem(parsed.error(), where, path);
    d.got = written.substr(0, 200);
    errors.push_back(std::move(d));
    return;
  }
  // No choice of a key that has some reads as another type.
  const bool wants_text =
      info && info->allowed.empty() &&
      (info->type & (string_value | path_value | duration_value | selector_value)) &&
      (types_of(value) & info->type) == 0;
  if (!is_toml || value.kind == Kind::other || wants_text) {
    value = ConfigValue{.kind = Kind::string, .text = interpolate(written, where, errors)};
  }
  const auto place = [&](auto&& self, ConfigValue& v) -> void {
    v.where = where;
    for (auto& member : v.members) {
      member.where = where;
      self(self, member.value);
    }
    for (ConfigValue& item : v.items) self(self, item);
  };
  place(place, value);

  ConfigValue* at_value = &root;
  std::string above;  // its path
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const KeyInfo* whole = i == 0 ? nullptr : train_keys().find(above);
    if (at_value->kind == Kind::string && whole && !whole->short_key.empty()) {
      ConfigValue table{.where = at_value->where};
      table.members.push_back({std::string(whole->short_key), at_value->where, *at_value});
      *at_value = std::move(table);
    }
    above += (i == 0 ? "" : ".") + (part.find_first_of(".[") == std::string::npos ? part : "*");
    if (at_value->kind == Kind::list) {
      std::size_t index = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
      if (error != std::errc() || end != part.data() + part.size() ||
          index > at_value->items.size()) {
        errors.push_back(at(where, path, "no such item of the list",
                            "0 to " + std::to_string(at_value->items.size()), part));
        return;
      }
      if (index == at_value->items.size()) at_value->items.push_back({.where = where});
      at_value = &at_value->items[index];
    } else if (at_value->kind == Kind::table) {
      ConfigValue* child = at_value->find(part);
      if (!child) {
        ConfigValue fresh{.where = where};
        const bool index_next = i + 1 < parts.size() && !parts[i + 1].empty() &&
                                parts[i + 1].find_first_not_of("0123456789") == std::string::npos;
        if (index_next) fresh.kind = Kind::list;
        at_value->members.push_back({part, where, std::move(fresh)});
        child = &at_value->members.back().value;
      }
      at_value = child;
    } else {
      errors.push_back(
          at(where, path, "only tables and lists have parts", "", describe(*at_value)));
      return;
    }
  }
  *at_value = std::move(value);
}

std::string toml_string(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\t') {
      result += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr std::string_view digits = "0123456789ABCDEF";
      result += "\\u00";
      result += digits[static_cast<unsigned char>(c) >> 4];
      result += digits[c & 15];
    } else {
      if (text.substr(i, 2) == "${") result += '$';
      result += c;
    }
  }
  return result + '"';
}

std::string toml_key(std::string_view name) {
  constexpr std::string_view bare =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!name.empty() && name.find_first_not_of(bare) == std::string_view::npos)
    return std::string(name);
  std::string quoted = toml_string(name);
  for (std::size_t i = 0; (i = quoted.find("$${", i)) != std::string::npos;) quoted.erase(i, 1);
  return quoted;
}

std::string toml_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace tandem
