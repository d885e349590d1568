#include "engine/config/keys/config_header.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "engine/graph/text.h"

namespace tandem {
namespace {

/// A table whose keys depend on the word under "kind": each word is a struct of its own, a member
/// `kind` holds one of them.
struct Family {
  std::string_view table, variant, ending, help;
};
constexpr Family families[] = {
    {"optimizer", "Optimizer", "", "The rules of optimizer.kind: docs/guide/optimizers.md."},
    {"optimizer.groups[]", "Optimizer", "", ""},
    {"optimizer.schedule", "Schedule", "Schedule", "The shapes of optimizer.schedule.kind."},
    {"optimizer.schedule.parts[]", "Schedule", "Schedule", ""},
    {"loss.terms[]", "Loss", "Loss", "The formulas of loss.terms[].kind: docs/losses.md."}};
/// Tables that mean something without any key, and a list that means something without any item.
constexpr std::string_view optional_keys[] = {"optimizer.ema", "optimizer.swa",
                                              "optimizer.lookahead", "data.missing"};
constexpr std::pair<std::string_view, std::string_view> own_spellings[] = {
    {"adamw", "AdamW"}, {"nadam", "NAdam"}, {"radam", "RAdam"}, {"rmsprop", "RmsProp"}};
constexpr std::pair<std::string_view, std::string_view> names_of_marks[] = {
    {",", "comma"}, {";", "semicolon"}, {".", "point"}, {"_", "underscore"}};
constexpr std::string_view reserved[] = {"auto",     "default", "double", "float", "int",
                                         "long",     "new",     "not",    "or",    "short",
                                         "template", "union",   "xor"};

constexpr std::size_t line_length = 120;  // long lines keep the list of keys short

constexpr std::string_view header_head =
    R"(// The configuration of a training as structs, one for each table of train.toml: `make docs` writes this file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tandem::api::inline v1 {

/// A length in optimizer steps, in epochs of the training data or in seconds of wall-clock time.
struct Duration {
  enum class Unit : std::uint8_t { steps, epochs, seconds };
  double value = 0;
  Unit unit = Unit::steps;
  static constexpr Duration steps(std::int64_t count) { return {static_cast<double>(count)}; }
  static constexpr Duration epochs(double count) { return {count, Unit::epochs}; }
  static constexpr Duration seconds(double count) { return {count, Unit::seconds}; }
  static constexpr Duration minutes(double count) { return seconds(60 * count); }
  bool operator==(const Duration&) const = default;
};

// Members have the names of the keys; docs/train_toml.md says what each means, with its default and its range. A member
// that is not set, and a list without items, leaves the key out. `kind` is a struct with the options that this kind
// has. Words that C++ reserves end in "_".
// clang-format off
template <class T> using Maybe = std::optional<T>;
/// Files in order, or those of each array by its name.
using Files = std::variant<std::vector<std::string>, std::map<std::string, std::vector<std::string>>>;

)";

constexpr std::string_view header_end =
    R"(// clang-format on

}  // namespace tandem::api::inline v1
)";

constexpr std::string_view members_head =
    R"(// The keys of the members of tandem/train_config.h, and the words of its enumerations. `make docs`
// writes this file.
// clang-format off
)";

/// "AdamW8bit" of "adamw8bit".
std::string capitalised(std::string_view word) {
  for (const auto& [of, spelling] : own_spellings) {
    if (word.starts_with(of)) return std::string(spelling).append(word.substr(of.size()));
  }
  std::string text(word);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(text[0]));
  return text;
}

/// "ScheduleFreeAdamW" of "schedule_free_adamw".
std::string camel(std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find('_'), words.size());
    text += capitalised(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return text;
}

/// "load" of "parameters.load[]", "field" of "data.fields.*".
std::vector<std::string> words_of_path(std::string_view path) {
  std::vector<std::string> steps;
  for (std::size_t end = 0;; path.remove_prefix(end + 1)) {
    end = path.find('.');
    std::string step(path.substr(0, end));
    const bool is_item = step == "*" || step.ends_with("[]");
    while (step.ends_with("[]")) step.resize(step.size() - 2);
    if (step != "*") steps.push_back(std::move(step));
    if (is_item && steps.back().ends_with('s')) steps.back().pop_back();
    if (end == std::string_view::npos) break;
  }
  const bool is_clear = steps.size() > 1 && (steps[0] == "parameters" || steps[1] == "schedule");
  if (is_clear) steps.erase(steps.begin());
  return steps;
}

std::string name_of_path(std::string_view path) {
  std::string name;
  for (const std::string& step : words_of_path(path)) name += camel(step);
  return name;
}

std::string struct_name(std::string_view path) {
  return path.empty() ? "TrainConfig" : name_of_path(path) + "Settings";
}
std::string enum_name(std::string_view path) {
  const bool is_main = path.find('.') == std::string_view::npos;
  return (is_main ? "Run" : "") + name_of_path(path);
}

/// A word as the name of a member or an enumerator.
std::string identifier(std::string_view word) {
  for (const auto& [mark, name] : names_of_marks) {
    if (word == mark) return std::string(name);
  }
  const bool is_reserved =
      std::find(std::begin(reserved), std::end(reserved), word) != std::end(reserved);
  return std::string(word) + (is_reserved ? "_" : "");
}

bool may_be_absent(std::string_view path) {
  return std::find(std::begin(optional_keys), std::end(optional_keys), path) !=
         std::end(optional_keys);
}

const Family* family_of(std::string_view table) {
  const auto found = std::find_if(std::begin(families), std::end(families),
                                  [&](const Family& family) { return family.table == table; });
  return found == std::end(families) ? nullptr : found;
}

/// The first clause of a help.
std::string_view short_help(std::string_view help) {
  for (const std::string_view end : {"; ", ": "}) help = help.substr(0, help.find(end));
  return help;
}

/// "START a, b, cEND", where lines become too long with `next` in front of the others.
std::string filled(const std::string& start, const std::vector<std::string>& words,
                   std::string_view separator, std::string_view end, std::string_view next) {
  std::string text, line = start;
  for (const std::string& word : words) {
    const std::string part = word + std::string(&word == &words.back() ? end : separator);
    const bool is_open = line.ends_with('<');  // no space follows
    if (line.size() + (is_open ? 0 : 1) + part.size() > line_length) {
      text += line + "\n";
      line = next;
    }
    line += (is_open ? "" : " ") + part;
  }
  return text + line + "\n";
}

std::string comment(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return filled("///", words, "", "", "///");
}

/// On one line where that is long enough. `about` is a comment behind the first line, else above
/// it.
std::string structure(const std::string& name, const std::vector<std::string>& declarations,
                      const std::string& about = "") {
  std::string first = "struct " + name + " {", rest;
  const std::string whole =
      first + " " + joined(declarations, " ") + (declarations.empty() ? "};" : " };");
  if (whole.size() <= line_length)
    first = whole;
  else
    rest = filled(" ", declarations, "", " };", " ");
  if (about.empty()) return first + "\n" + rest;
  const std::string behind = first + "  // " + about + "\n";
  return (behind.size() <= line_length + 1 ? behind : comment(about) + first + "\n") + rest;
}

class HeaderWriter {
 public:
  explicit HeaderWriter(const KeyTable& table) : table_(table) {}

  void write() {
    const std::vector<Member> members = members_of("", "");
    text_ += "/// All of it.\nstruct TrainConfig {\n";
    text_ +=
        "  std::string file;  // relative paths and `runs` are next to it, whether it is there or "
        "not\n";
    text_ += filled(" ", declarations(members), "", "", " ");
    text_ +=
        "\n"
        "  /// Reads a train.toml. Throws Error{usage} with everything that is wrong in it.\n"
        "  static TrainConfig load(const std::string& path);\n"
        "  /// As TOML, which `load` reads back to the same.\n"
        "  std::string text() const;\n"
        "};\n";
    add_members("TrainConfig", members);
  }

  const std::string& text() const { return text_; }
  const std::string& members() const { return members_; }

 private:
  struct Member {
    std::string type, key;
  };

  const KeyInfo* row(const std::string& path) const {
    const auto found = std::find_if(table_.keys.begin(), table_.keys.end(),
                                    [&](const KeyInfo& key) { return key.path == path; });
    return found == table_.keys.end() ? nullptr : &*found;
  }

  /// The keys of a table, without those inside of them.
  std::vector<const KeyInfo*> keys_in(const std::string& table) const {
    const std::string start = table.empty() ? "" : table + ".";
    std::vector<const KeyInfo*> keys;
    for (const KeyInfo& key : table_.keys) {
      if (!key.path.starts_with(start)) continue;
      const std::string_view rest = key.path.substr(start.size());
      if (rest != "*" && rest.find_first_of(".[") == std::string_view::npos) keys.push_back(&key);
    }
    return keys;
  }

  /// The type of a value, without std::optional; defines the types that it is made of.
  std::string type_of(const KeyInfo& key) {
    const std::string path(key.path);
    if (!key.same_as.empty()) return type_of(*row(std::string(key.same_as)));
    if (!keys_in(path).empty()) {
      define_struct(path, key);
      return struct_name(path);
    }
    const KeyInfo *item = row(path + "[]"), *named = row(path + ".*");
    if (item != nullptr && named != nullptr) return "Files";
    if (named != nullptr) return "std::map<std::string, " + type_of(*named) + ">";
    std::vector<std::string> types;
    const auto add = [&](unsigned type, const char* name) {
      if (key.type & type) types.push_back(name);
    };
    add(boolean_value, "bool");
    add((key.type & number_value) != 0 ? 0u : integer_value, "std::int64_t");
    add(number_value, "double");
    add(duration_value, "Duration");
    if (!key.allowed.empty()) {
      types.push_back(define_enum(key));
    } else if (key.type & (string_value | path_value | selector_value)) {
      types.push_back("std::string");
    }
    if (key.type & list_value) {
      const std::string list =
          "std::vector<" + (item != nullptr ? type_of(*item) : std::string("std::string")) + ">";
      const bool is_short_list = key.allowed.empty();  // a plain value is a list of one
      if (is_short_list) types.clear();
      types.push_back(list);
    }
    return types.size() == 1 ? types[0] : "std::variant<" + joined(types, ", ") + ">";
  }

  Member member(const KeyInfo& key, const std::string& name) {
    std::string type = type_of(key);
    const bool is_plain = type.starts_with("std::vector<") || type.starts_with("std::map<") ||
                          type.ends_with("Settings");
    if (!is_plain || may_be_absent(key.path)) type = "Maybe<" + type + ">";
    return {std::move(type), name};
  }

  /// Those of the keys that tables of this kind have and others have not; of "": of all kinds.
  std::vector<Member> members_of(const std::string& table, const std::string& kind) {
    const Family* family = family_of(table);
    std::vector<Member> members;
    for (const KeyInfo* key : keys_in(table)) {
      const std::string name(key->path.substr(table.empty() ? 0 : table.size() + 1));
      const bool is_of_kind =
          std::any_of(key->kinds.begin(), key->kinds.end(),
                      [&](const KeyOfKind& having) { return having.kind == kind; });
      const bool is_own = family == nullptr || key->kinds.empty() ? kind.empty() : is_of_kind;
      if (!is_own) continue;
      if (family != nullptr && name == "kind") {
        define_kinds(*family, *key);
        members.push_back({"Maybe<" + std::string(family->variant) + ">", name});
      } else {
        members.push_back(member(*key, name));
      }
    }
    return members;
  }

  /// Returns its name: that of the table's own list, where both have the same words.
  std::string define_enum(const KeyInfo& key) {
    const std::string name = enum_name(key.path), words(key.allowed);
    for (const auto& [other, its_words] : enums_) {
      if (name.starts_with(other) && words == its_words) return other;
    }
    enums_.emplace_back(name, words);
    std::vector<std::string> identifiers;
    for (const std::string& word : words_of(words)) identifiers.push_back(identifier(word));
    const std::string line = filled("enum class " + name + " {", identifiers, ",", " };", " ");
    const std::size_t last = text_.rfind('\n', text_.size() - 2) + 1;  // where the last line begins
    const bool joins = text_.compare(last, 11, "enum class ") == 0 &&
                       text_.size() - last + line.size() <= line_length + 1;
    if (joins) text_.back() = ' ';
    text_ += line;
    members_ += "template <> inline constexpr std::string_view words_of_enum<" + name + "> = \"" +
                words + "\";\n";
    return name;
  }

  void define_struct(const std::string& path, const KeyInfo& key) {
    const std::string name = struct_name(path);
    if (!defined_.insert(name).second) return;
    const std::vector<Member> members = members_of(path, "");
    const std::string_view help = short_help(key.help);  // "one rule" says nothing more
    text_ += structure(name, declarations(members),
                       path + (help.starts_with("one ") ? "" : ": " + std::string(help)));
    if (path.find('.') == std::string::npos) text_ += "\n";  // what follows is of another table
    add_members(name, members);
  }

  void define_kinds(const Family& family, const KeyInfo& kind) {
    if (!defined_.insert(std::string(family.variant)).second) return;
    text_ += comment(std::string(family.help));
    std::vector<std::string> names;
    for (const std::string& word : words_of(kind.allowed)) {
      const std::vector<Member> members = members_of(std::string(family.table), word);
      names.push_back(camel(word) + std::string(family.ending));
      text_ += structure(names.back(), declarations(members));
      members_ += "template <> inline constexpr std::string_view word_of_kind<" + names.back() +
                  "> = \"" + word + "\";\n";
      add_members(names.back(), members);
    }
    text_ += filled("using " + std::string(family.variant) + " = std::variant<", names, ",", ">;",
                    "   ");
  }

  /// "type a, b;" of members that follow each other.
  static std::vector<std::string> declarations(const std::vector<Member>& members) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool is_first = i == 0 || members[i - 1].type != members[i].type;
      const bool is_last = i + 1 == members.size() || members[i + 1].type != members[i].type;
      std::string& text = is_first ? all.emplace_back(members[i].type + " ") : all.back();
      text += identifier(members[i].key) + (is_last ? ";" : ", ");
    }
    return all;
  }

  void add_members(const std::string& name, const std::vector<Member>& members) {
    members_ += "template <class V> void each_member(Of<" + name + ">, [[maybe_unused]] V v) {";
    for (const Member& member : members)
      members_ += "\n  v(\"" + member.key + "\", &" + name + "::" + identifier(member.key) + ");";
    members_ += members.empty() ? "}\n" : "\n}\n";
  }

  const KeyTable& table_;
  std::set<std::string> defined_;
  std::vector<std::pair<std::string, std::string>> enums_;  // names and words
  std::string text_, members_;
};

}  // namespace

std::string config_header(const KeyTable& table) {
  HeaderWriter writer(table);
  writer.write();
  return std::string(header_head) + writer.text() + std::string(header_end);
}

std::string config_members(const KeyTable& table) {
  HeaderWriter writer(table);
  writer.write();
  return std::string(members_head) + writer.members();
}

}  // namespace tandem
