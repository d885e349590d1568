// How many problems of one kind are shown, and the message about the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"

namespace tandem {

/// As many as the command-line tool prints for an error.
inline constexpr std::size_t shown_problems = 50;

/// `problems` from `first` on are those shown out of `count`: where these are not all, the first
/// one says how many more there are. `what`: "rows".
inline void tell_others(std::vector<Diagnostic>& problems, std::size_t first, std::int64_t count,
                        const std::string& what) {
  if (first >= problems.size() || count <= static_cast<std::int64_t>(problems.size() - first))
    return;
  problems[first].message += " (and " + std::to_string(count - 1) + " " + what + " more)";
}

/// The message about rows that were left out; `first_bad`: the reason for the first one. `what`:
/// "rows".
inline std::string left_out_text(std::int64_t bad, std::int64_t all, const std::string& first_bad,
                                 const std::string& what = "rows") {
  return std::to_string(bad) + " of " + std::to_string(all) + " " + what +
         " were left out; the first: " + first_bad;
}
/// Whether more than 1 of 100 were left out, which causes a warning.
inline bool are_many_left_out(std::int64_t bad, std::int64_t all) { return bad * 100 > all; }

/// Keeps the first three of those that say the same of one field of rows, and the number of others.
inline void fold_alike(std::vector<Diagnostic>& problems) {
  constexpr std::size_t kept_of_a_kind = 3;
  struct Kind {
    std::string text;
    std::size_t last = 0, count = 0;
  };
  std::vector<Kind> kinds;
  std::vector<Diagnostic> kept;
  for (Diagnostic& d : problems) {
    const std::string text =
        d.message + "\n" + d.expected + "\n" + d.path + "\n" + std::to_string(d.column);
    auto kind = kinds.begin();
    while (kind != kinds.end() && kind->text != text) ++kind;
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{text});
    if (++kind->count > kept_of_a_kind) continue;
    kind->last = kept.size();
    kept.push_back(std::move(d));
  }
  for (const Kind& kind : kinds) {
    if (kind.count > kept_of_a_kind)
      kept[kind.last].message +=
          " (and in " + std::to_string(kind.count - kept_of_a_kind) + " rows after it)";
  }
  problems = std::move(kept);
}

/// Folds those that are alike, where reading ended with the last one: what follows is unknown.
inline void tell_end_of_reading(std::vector<Diagnostic>& problems) {
  const std::size_t count = problems.size();
  fold_alike(problems);
  if (count < shown_problems) return;
  problems[0].message += " (the first " + std::to_string(count) + ", there may be more)";
}

}  // namespace tandem
