#include "engine/formats/weights/name_rules.h"

#include <algorithm>
#include <cassert>
#include <deque>

namespace tandem {
namespace {

using Parts = std::vector<std::string>;
constexpr std::string_view any_parts = "**";

Parts parts_of_name(std::string_view name) {
  Parts parts;
  for (std::size_t start = 0;;) {
    const std::size_t dot = name.find('.', start);
    parts.emplace_back(name.substr(start, dot - start));
    if (dot == std::string_view::npos) return parts;
    start = dot + 1;
  }
}

/// A table of truth values: whether the rest matches from a place on. Time stays within pattern
/// times name.
class Reachable {
 public:
  Reachable(std::size_t rows, std::size_t columns)
      : columns_(columns), values_(rows * columns, false) {}
  std::vector<bool>::reference at(std::size_t row, std::size_t column) {
    return values_[row * columns_ + column];
  }

 private:
  std::size_t columns_;
  std::vector<bool> values_;
};

/// Matches one part; the texts that each `*` matches are appended to `captures` if given.
bool match_part(std::string_view pattern, std::string_view text,
                std::deque<std::string>* captures) {
  const std::size_t n = pattern.size(), m = text.size();
  Reachable rest(n + 1, m + 1);
  rest.at(n, m) = true;
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m + 1; j-- > 0;) {
      if (pattern[i] == '*')
        rest.at(i, j) = rest.at(i + 1, j) || (j < m && rest.at(i, j + 1));
      else
        rest.at(i, j) = j < m && pattern[i] == text[j] && rest.at(i + 1, j + 1);
    }
  }
  if (!rest.at(0, 0)) return false;
  for (std::size_t i = 0, j = 0; captures != nullptr && i < n; ++i) {
    if (pattern[i] != '*') {
      ++j;
      continue;
    }
    std::size_t end = m;
    while (!rest.at(i + 1, end)) --end;
    captures->emplace_back(text.substr(j, end - j));
    j = end;
  }
  return true;
}

/// "**", or the stars of a part.
std::vector<std::string> wildcards_of(std::string_view pattern) {
  std::vector<std::string> all;
  for (const std::string& part : parts_of_name(pattern)) {
    if (part == any_parts) {
      all.push_back(part);
      continue;
    }
    for (const char c : part) {
      if (c == '*') all.emplace_back("*");
    }
  }
  return all;
}

bool has_inner_double_star(std::string_view pattern) {
  for (const std::string& part : parts_of_name(pattern)) {
    if (part != any_parts && part.find(any_parts) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::string name_pattern_problem(std::string_view from, std::string_view to) {
  if (from.empty() || to.empty()) return "an empty name";
  for (const std::string_view pattern : {from, to}) {
    if (has_inner_double_star(pattern)) return "** must be a whole part between dots";
  }
  if (wildcards_of(from) != wildcards_of(to))
    return "the new name needs the wildcards of the old one, in the same order";
  return "";
}

NamePattern::NamePattern(std::string_view from, std::string_view to)
    : from_(parts_of_name(from)), to_(parts_of_name(to)) {}

std::string NamePattern::applied(std::string_view name) const {
  const Parts parts = parts_of_name(name);
  const std::size_t n = from_.size(), m = parts.size();
  Reachable rest(n + 1, m + 1);
  rest.at(n, m) = true;
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m + 1; j-- > 0;) {
      if (from_[i] == any_parts)
        rest.at(i, j) = rest.at(i + 1, j) || (j < m && rest.at(i, j + 1));
      else
        rest.at(i, j) = j < m && rest.at(i + 1, j + 1) && match_part(from_[i], parts[j], nullptr);
    }
  }
  if (!rest.at(0, 0)) return "";
  std::deque<Parts> of_parts;        // what each ** matches,
  std::deque<std::string> of_stars;  // and each *
  for (std::size_t i = 0, j = 0; i < n; ++i) {
    if (from_[i] != any_parts) {
      match_part(from_[i], parts[j++], &of_stars);
      continue;
    }
    std::size_t end = m;
    while (!rest.at(i + 1, end)) --end;
    of_parts.emplace_back(parts.begin() + static_cast<std::ptrdiff_t>(j),
                          parts.begin() + static_cast<std::ptrdiff_t>(end));
    j = end;
  }
  Parts result;
  for (const std::string& part : to_) {
    if (part == any_parts) {
      assert(!of_parts.empty());
      result.insert(result.end(), of_parts.front().begin(), of_parts.front().end());
      of_parts.pop_front();
      continue;
    }
    std::string& made = result.emplace_back();
    for (const char c : part) {
      if (c != '*') {
        made += c;
        continue;
      }
      made += of_stars.front();
      of_stars.pop_front();
    }
  }
  std::string text;
  for (const std::string& part : result) text += (&part == &result[0] ? "" : ".") + part;
  return text;
}

NameRules::NameRules(std::string strip,
                     const std::vector<std::pair<std::string, std::string>>& rename,
                     std::string add)
    : strip_(std::move(strip)), add_(std::move(add)) {
  for (const auto& [from, to] : rename) patterns_.emplace_back(from, to);
}

std::string NameRules::applied(std::string_view name) const {
  if (name.size() > strip_.size() && name.starts_with(strip_)) name.remove_prefix(strip_.size());
  for (const NamePattern& pattern : patterns_) {
    if (const std::string renamed = pattern.applied(name); !renamed.empty()) return add_ + renamed;
  }
  return add_ + std::string(name);
}

}  // namespace tandem
