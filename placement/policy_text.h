// The text of a policy under edit, and the meaning that it must have after each change.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "placement/edit.h"
#include "placement/policy.h"

namespace tandem {

/// Every change splices the text and lays the same change over a parsed tree; `finish` compares.
/// Throws Error{usage} where the text is not TOML or has another form than one list of rules.
class PolicyText {
 public:
  static constexpr std::size_t npos = std::string::npos;

  PolicyText(std::string_view text, const std::string& path);

  ConfigValue tree() const;  // the parsed text with all changes so far
  /// Offset of the list `name`; npos where there is none.
  std::size_t list_start(const char* name) const;
  /// Index of the last rule with the selector and filters of `edit`.
  std::optional<std::size_t> find_rule(const PolicyEdit& edit) const;

  /// Adds `policy = 1` where it is missing: as the first key, after the comments at the top.
  void add_version();
  void set(std::size_t index, const std::string& key, const std::string& toml);
  void clear(std::size_t index, const std::string& key);
  /// A comment behind it stays, unless it is one of `policy auto`.
  void remove(std::size_t index, const char* list = "rules");
  void append(const std::string& rule) { insert("rules", npos, rule); }
  /// Before the rule with this index, and before the comments above that one; npos: at the end.
  /// `behind`, ",  # 188 operators", stands behind it where it gets a line of its own.
  void insert(const char* list, std::size_t index, const std::string& rule,
              const std::string& behind = ",");
  void replace_list(const char* name, const std::string& toml);

  /// The text, after checking that it says what was asked for and nothing else.
  std::string finish(std::string_view before) const;

 private:
  void insert_before(const char* list, std::size_t index, const std::string& rule,
                     const std::string& line);
  void insert_last(const char* list, const std::string& rule, const std::string& line);
  std::size_t offset(const Where& where) const;
  /// The text with the line ends of the file.
  std::string lines(const std::string& text) const;
  /// Adds `name = toml` on lines of its own after the top-level key `behind`, or after `policy`.
  void add_list(const std::string& name, const std::string& toml, const char* behind);

  std::string text_;
  std::string path_;
  ConfigValue wanted_;
};

/// Whether it is a comment of `policy auto` on one of its rules: "# 12 operators, 1.5 KiB".
bool is_count_of_auto(std::string_view comment);

/// A value of a rule's key as TOML: text stays text where the key wants it. Throws Error{usage} for
/// unknown keys.
std::string rule_value(const std::string& key, const std::string& written);

}  // namespace tandem
