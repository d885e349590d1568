// Writes the names in one scope as few parts of selectors: ranges of numbers, sets of names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// A name as part of a selector: letters that mean something there become `?`.
std::string selector_part(std::string_view name);

/// Names that one part of a selector covers: "op_{0..59}", "{layers,norm}".
struct PartSet {
  std::string text;
  std::vector<std::size_t> members;  // indices of the names
};

/// Three or more numbers in a row become a range. `prefix`: how many characters come before each
/// set; together with them it has at most about 70.
std::vector<PartSet> part_sets(const std::vector<std::string>& names, std::size_t prefix);

}  // namespace tandem
