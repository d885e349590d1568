// How many problems of one kind are shown, and what is said of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"

namespace tandem {

/// As many as the command-line tool prints of an error.
inline constexpr std::size_t shown_problems = 50;

/// `problems` from `first` on are those that are shown of `count`: where that is not all, the first
/// one says how many there are beside it. `what`: "rows".
inline void tell_others(std::vector<Diagnostic>& problems, std::size_t first, std::int64_t count,
                        const std::string& what) {
  if (first >= problems.size() || count <= static_cast<std::int64_t>(problems.size() - first))
    return;
  problems[first].message += " (and " + std::to_string(count - 1) + " " + what + " more)";
}

/// The same where reading ended with the last one that is shown: nobody knows what follows.
inline void tell_end_of_reading(std::vector<Diagnostic>& problems) {
  if (problems.size() < shown_problems) return;
  problems[0].message += " (the first " + std::to_string(problems.size()) + ", there may be more)";
}

}  // namespace tandem
