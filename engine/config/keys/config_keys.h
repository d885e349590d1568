// Tables of keys: the checker, `tandem config`, docs/ and the JSON schemas read them. train.toml's
// is here.

#include "engine/graph/text.h"
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// A key as one kind has it, where what it is depends on the word under "kind".
struct KeyOfKind {
  std::string_view kind;
  unsigned type = 0;
  std::string_view fallback, allowed, help;  // as in KeyInfo
};

struct KeyInfo {
  /// "optimizer.groups[].lr"; "*" matches any name.
  std::string_view path;
  unsigned type = 0;          // ValueTypes, or-ed
  std::string_view fallback;  // the default as TOML; "required"; "(in words)"; "" = none
  std::string_view allowed;   // "a|b|c" for strings; "" = any
  std::string_view help;      // one line
  double low = -1e300;        // least and greatest number
  double high = 1e300;
  /// For a table: the key that is meant by a plain value in the table's place.
  std::string_view short_key = "";
  bool may_be_empty = false;  // a path: "" means none
  /// For a table: the key with the same keys, which the docs then describe only once.
  std::string_view same_as = "";
  std::span<const KeyOfKind> kinds = {};  // those that have the key; empty: it is no key of a kind
  /// Other spellings of the words that are allowed: {"|", "bar"}.
  std::span<const std::pair<std::string_view, std::string_view>> spellings = {};
};

/// All keys of one kind of file; parents before children.
struct KeyTable {
  std::string_view file;  // "train.toml"
  std::span<const KeyInfo> keys;
  /// Words that other programs use for keys of this one: {theirs, ours}.
  std::span<const std::pair<std::string_view, std::string_view>> other_words;
  /// The beginning of the page in docs/: everything above the first table.
  std::string_view page_head;
  std::string_view main_title;  // title of the page's section with the plain keys

  /// Null where no key has that path; indices match "[]", names match "*".
  const KeyInfo* find(std::string_view path) const;
};

const KeyTable& train_keys();
inline std::span<const KeyInfo> config_keys() { return train_keys().keys; }
std::string type_text(unsigned type);  // "string or table"
/// The parts of "a|b|c".
std::vector<std::string> words_of(std::string_view text);
/// The names of a list's items as "a|b|c".
template <class List>
std::string names_in(const List& list) {
  return joined(list, "|", [](const auto& item) { return item.name; });
}
/// The item of a list that has this name; null where there is none.
template <class List>
auto* find_named(const List& list, std::string_view name) {
  const auto found = std::find_if(std::begin(list), std::end(list),
                                  [&](const auto& item) { return item.name == name; });
  return found == std::end(list) ? nullptr : &*found;
}
/// "a|b|c" as "a, b, c".
std::string listed(std::string_view words);
/// The words that a key allows, with their other spellings.
std::string listed_words(const KeyInfo& key);
/// The word that a text of this key means; the text itself where it is no other spelling.
std::string_view word_meant(const KeyInfo& key, std::string_view text);
/// "at least 0, at most 1"; for integers, where `type` says so, without ".0".
std::string range_text(unsigned type, double low, double high);

/// As a cell of a table in docs/.
std::string table_cell(std::string_view text);
/// One line a key: path, type, default, help.
std::string config_keys_text(const KeyTable& table = train_keys());
/// A page of docs/, like docs/train_toml.md.
std::string config_keys_markdown(const KeyTable& table = train_keys());
/// All about one key. Throws Error{usage} with the nearest key.
std::string explain_config_key(std::string_view path, const KeyTable& table = train_keys());

/// Texts that an editor suggests for the keys of a name, such as "at"; other texts stay allowed.
using SchemaSuggestions = std::map<std::string_view, std::vector<std::string>>;
/// A JSON Schema of the file in the constructs of draft 7, which editors of TOML know.
std::string config_json_schema(const KeyTable& table = train_keys(),
                               const SchemaSuggestions& suggestions = {});

}  // namespace tandem
