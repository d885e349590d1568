#include "engine/config/keys/config_check.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// The one of `words` that is written otherwise, or begins so; else the nearest name.
std::string nearest_word(const std::string& text, const std::vector<std::string>& words) {
  constexpr std::size_t least_letters = 3;
  const std::string wanted = lower_case(text);
  std::vector<std::string> begin_so;
  for (const std::string& word : words) {
    const std::string known = lower_case(word);
    if (known == wanted) return word;
    if (wanted.size() >= least_letters && known.starts_with(wanted)) begin_so.push_back(word);
  }
  return begin_so.size() == 1 ? begin_so[0] : nearest_name(text, words);
}

class Checker {
 public:
  Checker(const KeyTable& table, std::vector<Diagnostic>& errors)
      : table_(table), errors_(errors) {}

  // `pattern` is the path in the table of keys, `shown` the path as the user writes it.
  void check(ConfigValue& value, const std::string& pattern, const std::string& shown) {
    if (value.kind == Kind::invalid) return;
    const KeyInfo* key = pattern.empty() ? nullptr : exact(pattern);
    const bool is_short = key && value.kind == Kind::string && !key->short_key.empty();
    const KeyInfo* short_for =
        is_short ? exact(pattern + "." + std::string(key->short_key)) : nullptr;
    if (key && (!check_value(value, *key, shown) ||
                (short_for && !check_text(value, *short_for, shown)))) {
      value.kind = Kind::invalid;
      return;
    }
    if (value.kind == Kind::list) {
      const bool has_short = key != nullptr && !key->short_key.empty();
      const std::string list = has_short ? pattern + "." + std::string(key->short_key) : pattern;
      for (std::size_t i = 0; i < value.items.size(); ++i)
        check(value.items[i], list + "[]", shown + "." + std::to_string(i));
    }
    if (value.kind == Kind::table) check_members(value, pattern, shown);
  }

 private:
  const KeyInfo* exact(std::string_view path) const {
    for (const KeyInfo& key : table_.keys) {
      if (key.path == path) return &key;
    }
    return nullptr;
  }

  void report(const ConfigValue& value, const std::string& shown, std::string message,
              std::string expected = "", std::string got = "", std::string fix = "") {
    errors_.push_back(at(value.where, shown, std::move(message), std::move(expected),
                         std::move(got), std::move(fix)));
  }

  bool check_value(const ConfigValue& value, const KeyInfo& key, const std::string& shown) {
    if ((types_of(value) & key.type) == 0) {
      std::string fix;
      if (key.type & duration_value && value.kind == Kind::integer) {
        fix = "write \"" + std::to_string(value.integer) + " steps\"";
      }
      report(value, shown, "wrong type", type_text(key.type), describe(value), fix);
      return false;
    }
    if (value.kind == Kind::string) return check_text(value, key, shown);
    if (value.kind == Kind::integer || value.kind == Kind::number) {
      if (!std::isfinite(value.number) || value.number < key.low || value.number > key.high) {
        std::string expected = range_text(key.type, key.low, key.high);
        if (expected.empty() || (!std::isfinite(value.number) && key.high >= 1e300))
          expected = "a finite number" + (expected.empty() ? "" : ", " + expected);
        report(value, shown, "out of range", expected,
               value.kind == Kind::integer ? std::to_string(value.integer)
                                           : toml_number(value.number));
        return false;
      }
    }
    return true;
  }

  bool check_text(const ConfigValue& value, const KeyInfo& key, const std::string& shown) {
    if (!key.allowed.empty()) {
      const std::vector<std::string> allowed = words_of(key.allowed);
      const std::string_view meant = word_meant(key, value.text);
      if (std::find(allowed.begin(), allowed.end(), meant) != allowed.end()) return true;
      report(value, shown, "unknown value", listed_words(key), describe(value),
             did_you_mean(nearest_word(value.text, allowed)));
      return false;
    }
    if (key.type & selector_value) {
      try {
        (void)Selector(value.text);
      } catch (const Error& error) {
        const Diagnostic& inner = error.diagnostics()[0];
        report(value, shown, inner.message, "", describe(value), inner.fix);
        return false;
      }
    }
    if (key.type & duration_value && !parse_duration(value.text)) {
      report(value, shown, "not a duration", "\"500 steps\", \"1 epoch\", \"30 min\" or \"2 h\"",
             describe(value));
      return false;
    }
    if (key.type & path_value && value.text.empty() && !key.may_be_empty) {
      report(value, shown, "an empty path");
      return false;
    }
    return true;
  }

  void check_members(ConfigValue& value, const std::string& pattern, const std::string& shown) {
    const std::string prefix = pattern.empty() ? "" : pattern + ".";
    const std::string shown_prefix = shown.empty() ? "" : shown + ".";
    std::vector<std::string> siblings;
    for (const KeyInfo& key : table_.keys) {
      if (!key.path.starts_with(prefix)) continue;
      const std::string_view rest = key.path.substr(prefix.size());
      if (rest.find_first_of(".[") != std::string_view::npos) continue;
      if (rest != "*") siblings.emplace_back(rest);
      if (key.fallback == "required" && rest != "*" && !value.find(rest)) {
        report(value, shown_prefix + std::string(rest), "this key is missing", type_text(key.type));
      }
    }
    for (ConfigValue::Member& member : value.members) {
      const std::string named = prefix + member.key, any = prefix + "*";
      const std::string path = shown_prefix + member.key;
      if (exact(named)) {
        check(member.value, named, path);
      } else if (exact(any)) {
        check(member.value, any, path);
      } else {
        errors_.push_back(at(member.where, path, "unknown key", "", "",
                             suggestion(member.key, siblings, shown_prefix)));
      }
    }
  }

  std::string suggestion(const std::string& key, const std::vector<std::string>& siblings,
                         const std::string& prefix) const {
    std::string wanted = key;
    for (const auto& [word, ours] : table_.other_words) {
      if (word == key) wanted = ours;
    }
    if (wanted.find(' ') != std::string::npos) return wanted;
    const std::string near = nearest_name(wanted, siblings);
    if (!near.empty()) return did_you_mean(prefix + near, "", "`");
    // A key of that name in another table, outside of lists if there is one.
    const auto depth = [](std::string_view path) {
      return std::count_if(path.begin(), path.end(), [](char c) { return c == '.' || c == '['; });
    };
    std::string_view elsewhere;
    for (const KeyInfo& info : table_.keys) {
      if (info.path.substr(info.path.rfind('.') + 1) != wanted) continue;
      if (elsewhere.empty() || depth(info.path) < depth(elsewhere)) elsewhere = info.path;
    }
    if (!elsewhere.empty()) return did_you_mean(std::string(elsewhere), "", "`");
    return siblings.empty() ? "" : "known here: " + joined(siblings);
  }

  const KeyTable& table_;
  std::vector<Diagnostic>& errors_;
};

}  // namespace

unsigned types_of(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::boolean:
      return boolean_value;
    case Kind::integer:
      return integer_value | number_value;
    case Kind::number:
      return number_value;
    case Kind::string:
      return string_value | path_value | duration_value | selector_value;
    case Kind::table:
      return table_value;
    case Kind::list:
      return list_value;
    default:
      return 0;
  }
}

void check_config(ConfigValue& root, std::vector<Diagnostic>& errors, const KeyTable& table) {
  Checker(table, errors).check(root, "", "");
}

}  // namespace tandem
