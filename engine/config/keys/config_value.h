// A configuration file as a tree of values that know where they were written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/error.h"

namespace tandem {

struct ConfigValue {
  enum class Kind : std::uint8_t {
    invalid,  // an error was reported; means "present, value unknown"
    boolean,
    integer,
    number,
    string,
    table,
    list,
    other,  // a date or time
  };
  struct Member;

  Kind kind = Kind::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double number = 0;  // also set for integers
  std::string text;
  std::vector<Member> members;  // in the file's order
  std::vector<ConfigValue> items;
  Where where;

  const ConfigValue* find(std::string_view key) const;
  ConfigValue* find(std::string_view key);
  /// Adds a member with a new key.
  void add(std::string key, ConfigValue value);
};

struct ConfigValue::Member {
  std::string key;
  Where where;  // place of the key
  ConfigValue value;
};

// Values that arguments of a command set, in place of lines of a file.
ConfigValue text_setting(std::string text);
ConfigValue integer_setting(std::int64_t integer);
ConfigValue table_setting();

/// The value as a message shows it: `string "adam"`.
std::string describe(const ConfigValue& value);

/// Parses TOML and replaces ${VAR} and ${VAR:-default} in strings ($${ means ${). Syntax errors and
/// unset variables are appended to `errors`.
ConfigValue parse_toml(std::string_view text, const std::string& file,
                       std::vector<Diagnostic>& errors);

// TOML spellings: a quoted string ("${" protected), a key (quoted where it has other characters
// than letters, digits, _ and -; no ${ is replaced in keys), a number that reads back exactly.
std::string toml_string(std::string_view text);
std::string toml_key(std::string_view name);
std::string toml_number(double value);

inline constexpr std::string_view command_line = "command line";
/// For a resumed run: the name of the command line that started it (0) or resumed it. Each
/// overrides those before it and the file.
std::string earlier_command_line(std::size_t number);
bool is_earlier_command_line(std::string_view source);

/// Lays `key.path.0=value` over the tree. `source`: what messages name in place of a file.
void apply_override(ConfigValue& root, const std::string& text, std::vector<Diagnostic>& errors,
                    std::string_view source = command_line);
/// Whether the first of two places takes precedence over the second, because it is on a command
/// line and the other one in a file, or on an earlier command line.
bool outranks(const Where& one, const Where& other);

}  // namespace tandem
