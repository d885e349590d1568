// Makes the rules of a policy's text fewer without changing what they ask for.
#pragma once

#include <string>

#include "placement/moves/policy_goal.h"

namespace tandem {

/// The length of a list of the file; 0 where it is not there.
std::size_t count_of(const ConfigValue* list);

/// Whether people have written something about the rule: a comment behind it or on the line above,
/// or a `why`.
bool has_remark(const std::string& text, const ConfigValue& rule);

/// Leaves out rules that decide nothing any more, and those that are not in the text `kept` and say
/// what holds without them. Rules with remarks stay, and those that decided nothing in `before`.
std::string without_needless(const std::string& text, const PolicyTexts& texts,
                             const PolicyGoal& goal, const std::string& before,
                             const std::string& kept);

/// Takes what moves out of a rule that matches more, where its selector does not grow by that; ""
/// where no rule can be narrowed so.
std::string narrowed(const std::string& text, const PolicyTexts& texts, const AskedValues& asked,
                     const RuleMatches& moved, const PolicyGoal& goal);

/// The last two rules as one, where they set the same and one selector covers both.
std::string folded_into_last(const std::string& text, const PolicyTexts& texts,
                             const PolicyGoal& goal);

}  // namespace tandem
