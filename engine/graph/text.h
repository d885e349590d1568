// Small functions on texts: joining items, trimming spaces, suggesting the name that was meant.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tandem {

/// "a, b, c" of the texts of a list; `text_of` makes an item's text, or names the member that is
/// it.
template <class List, class TextOf = std::identity>
std::string joined(const List& list, std::string_view separator = ", ", TextOf text_of = {}) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += separator;
    text += std::invoke(text_of, item);
  }
  return text;
}

/// The text without spaces before and after it.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The fix for an unknown name: `near` is the nearest known one; `otherwise` is returned where it
/// is empty.
inline std::string did_you_mean(std::string_view near, std::string_view otherwise = "",
                                std::string_view quote = "\"") {
  if (near.empty()) return std::string(otherwise);
  return std::string("did you mean ").append(quote).append(near).append(quote) + "?";
}

}  // namespace tandem
