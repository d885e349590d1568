// `policy edit`: sets or clears a rule by splicing the user's text; comments, order and spelling of
// everything else stay.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

struct PolicyEdit {
  std::string at;  // the rule's selector, as written in the file
  /// Filters of the rule: {"op", "Gather"}. A rule with other filters is another rule.
  std::vector<std::pair<std::string, std::string>> filters;
  /// Attributes to give it: {"run", "cpu"}, {"lookahead", "2"}; values are TOML, else bare strings.
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> clear;         // attributes to take away
  bool remove = false;                    // the whole rule
  std::vector<std::string> devices = {};  // that rules may name too: "gpu=emulated:0"
};

/// The edited text. `set` changes the last rule of `rules` with that selector and those filters, or
/// appends a line. Throws Error{usage}: text that is not TOML, unknown keys, no such rule to clear,
/// a rule that `clear` would leave without attributes, or a result that would not say what was
/// asked for. Line ends are those of the file.
std::string edit_policy(std::string_view text, const std::string& path, const PolicyEdit& edit);

/// Replaces the list `auto` whole. Each line is a rule as TOML with its comma, and may end in a
/// comment: `{ at = "**", on = "gpu0" },  # 188 operators`.
std::string replace_auto(std::string_view text, const std::string& path,
                         const std::vector<std::string>& lines);

/// Lines of the comments in the list `auto` that `policy auto` did not write itself: `replace_auto`
/// drops them.
std::vector<int> comments_in_auto(std::string_view text, const std::string& path);

}  // namespace tandem
