// A placement that a search proposes, as changes of the rules of a policy's text.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct ProposedRules {
  /// Lines of the list `auto` as the search writes them: `{ at = "**", on = "gpu" },  # 188
  /// operators`.
  std::vector<std::string> lines;
  /// Whether they are the list `auto`, before the policy's own rules; else they are all rules that
  /// the policy has.
  bool keeps_rules = true;
};

struct RuleChange {
  enum class Kind { add, remove } kind = Kind::add;
  std::string list;           // "auto" or "rules"
  std::string rule, comment;  // comment: what the search says about a new rule
  int line = 0;               // in the text, of a rule to remove
};

/// What is missing from the text to the proposal; nothing where it has these rules. In the order of
/// the lists, of which rules in the same order on both sides stay.
std::vector<RuleChange> changes_to(const ProposedRules& proposal, const std::string& text,
                                   const std::string& path);

/// The text with some of these changes, by their indices; comments and order of all else stay.
/// Throws Error{usage} where the text cannot be edited.
std::string with_changes(const ProposedRules& proposal, const std::string& text,
                         const std::string& path, const std::vector<int>& taken);

}  // namespace tandem
