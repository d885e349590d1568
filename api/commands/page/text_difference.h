// The difference between two texts, line by line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::api {

struct TextLine {
  enum class Kind { same, removed, added } kind = Kind::same;
  int before = 0, after = 0;  // line numbers from 1; 0: the text does not have it
  std::string text;
};

/// All lines of both texts in order, removed ones before added ones.
std::vector<TextLine> text_difference(std::string_view before, std::string_view after);

}  // namespace tandem::api
