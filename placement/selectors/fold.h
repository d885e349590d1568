// Many names of operators or parameters as few selectors: modules whole, siblings that are alike as
// ranges and sets.
#pragma once

#include <string>
#include <vector>

namespace tandem {

/// Names of which the same is said, and no other name is covered.
struct Folded {
  std::string at;  // "blocks.{0..11}.**"
  int label = 0;
  std::vector<int> items;  // indices of the names, at least one
};

/// `labels`: what is said of each of the names; of those below 0, nothing. In the order of the
/// names. Letters of a name that mean something in selectors become `?`, which may stand for more.
std::vector<Folded> folded(const std::vector<std::string>& names, const std::vector<int>& labels);

}  // namespace tandem
