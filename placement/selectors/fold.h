// Writes many names of operators or parameters as few selectors: whole modules, and ranges and sets
// of siblings that are alike.
#pragma once

#include <string>
#include <vector>

namespace tandem {

/// A selector of names with one label; it covers no other name.
struct Folded {
  std::string at;  // "blocks.{0..11}.**"
  int label = 0;
  std::vector<int> items;  // indices of the names, at least one
};

/// `labels`: one for each name; names with a label below 0 are left out. In the order of the names.
/// Letters of a name that mean something in selectors become `?`, which may cover more.
std::vector<Folded> folded(const std::vector<std::string>& names, const std::vector<int>& labels);

}  // namespace tandem
