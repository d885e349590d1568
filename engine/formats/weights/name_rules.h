// How the names in a file of weights are changed before they are looked up in the model.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

/// The grammar of a pattern. A name is parts joined by `.`; the whole name must match.
///   `*`    any characters of one part, as many as possible
///   `**`   any number of whole parts, as many as possible: `**.x` also matches `x`
/// The new name has the same wildcards in the same order; each is replaced by what it matched. All
/// other characters are taken as they are.
class NamePattern {
 public:
  NamePattern(std::string_view from, std::string_view to);

  /// The new name, or none where the pattern does not match: "" then.
  std::string applied(std::string_view name) const;

 private:
  std::vector<std::string> from_, to_;  // by parts
};

/// What is wrong with such a pair; "" where nothing is.
std::string name_pattern_problem(std::string_view from, std::string_view to);

/// In this order: the prefix `strip` is removed where a name has it, the first pattern that matches
/// gives the new name, the prefix `add` is added.
class NameRules {
 public:
  NameRules(std::string strip, const std::vector<std::pair<std::string, std::string>>& rename,
            std::string add);
  std::string applied(std::string_view name) const;

 private:
  std::string strip_, add_;
  std::vector<NamePattern> patterns_;
};

}  // namespace tandem
