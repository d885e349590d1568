// The one table of train.toml's keys: the checker, `tandem config`, docs/ and the JSON schema read
// it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// What a value may be; a key may take several of these.
enum ValueType : unsigned {
  boolean_value = 1,
  integer_value = 2,
  number_value = 4,  // an integer does too
  string_value = 8,
  path_value = 16,      // a string; relative to the file
  duration_value = 32,  // a string: "500 steps", "1 epoch", "30 min"
  selector_value = 64,  // a string
  table_value = 128,
  list_value = 256,  // its items are the key with "[]"
};

struct KeyInfo {
  std::string_view path;      // "optimizer.groups[].lr"; "*" stands for any name
  unsigned type = 0;          // ValueTypes, or-ed
  std::string_view fallback;  // the default as TOML; "required"; "(in words)"; "" = none
  std::string_view allowed;   // "a|b|c" for strings; "" = any
  std::string_view later;     // known values that this version refuses; "*" = the key itself
  std::string_view help;      // one line
  double low = -1e300;        // least and greatest number
  double high = 1e300;
};

std::span<const KeyInfo> config_keys();
/// Null where no key has that path; indices and names may stand for "[]" and "*".
const KeyInfo* find_config_key(std::string_view path);
std::string type_text(unsigned type);  // "string or table"

/// One line a key: path, type, default, help.
std::string config_keys_text();
/// The page docs/train_toml.md.
std::string config_keys_markdown();
/// All about one key. Throws Error{usage} with the nearest key.
std::string explain_config_key(std::string_view path);
/// A JSON Schema (draft 2020-12) of train.toml, for editors.
std::string config_json_schema();

}  // namespace tandem
