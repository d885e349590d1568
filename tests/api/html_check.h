// Checks that a text is HTML as the project writes it: every element closed in its order,
// attributes quoted, no loose markup.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::testing {

/// "" for valid text, else what is wrong and where.
inline std::string html_mistake(std::string_view text) {
  const std::set<std::string> empty_elements{"meta", "input", "br"};
  std::vector<std::string> open;
  const auto at = [&](std::size_t i) { return " at " + std::string(text.substr(i, 60)); };
  std::size_t i = 0;
  if (!text.starts_with("<!DOCTYPE html>")) return "no doctype";
  i = 15;
  while (i < text.size()) {
    if (text[i] == '>') return "a loose >" + at(i);
    if (text[i] == '&') {
      const std::size_t end = text.find(';', i);
      if (end == std::string_view::npos || end > i + 8) return "a loose &" + at(i);
      i = end + 1;
      continue;
    }
    if (text[i] != '<') {
      ++i;
      continue;
    }
    const std::size_t begin = i++;
    const bool closes = i < text.size() && text[i] == '/';
    if (closes) ++i;
    std::string name;
    while (i < text.size() && std::isalnum(static_cast<unsigned char>(text[i]))) name += text[i++];
    if (name.empty()) return "a loose <" + at(begin);
    while (i < text.size() && text[i] != '>' && text[i] != '/') {
      if (text[i] == '"') {
        i = text.find('"', i + 1);
        if (i == std::string_view::npos) return "an open quote" + at(begin);
      }
      if (text[i] == '<' || text[i] == '\'') return "a loose character in a tag" + at(begin);
      ++i;
    }
    const bool is_closed = i < text.size() && text[i] == '/';
    if (is_closed) ++i;
    if (i >= text.size() || text[i] != '>') return "a tag that does not end" + at(begin);
    ++i;
    if (closes) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back()) + at(begin);
      open.pop_back();
    } else if (!is_closed && !empty_elements.contains(name)) {
      open.push_back(name);
      if (name == "script" || name == "style") {
        const std::size_t end = text.find("</" + name, i);
        if (end == std::string_view::npos) return "<" + name + "> is not closed";
        i = end;
      }
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace tandem::testing
