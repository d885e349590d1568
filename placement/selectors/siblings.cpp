#include "placement/selectors/siblings.h"

#include <charconv>
#include <optional>
#include <utility>

#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr std::size_t longest_set = 70;  // characters

// "op_12" as "op_" and 12, so that it can be part of a range of numbers.
struct Numbered {
  std::string stem;
  int number = 0;
};

std::optional<Numbered> numbered(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;  // 0: only digits
  Numbered found{name.substr(0, digits)};
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + digits, end, found.number);
  if (error != std::errc() || stop != end) return std::nullopt;
  if (std::to_string(found.number) != name.substr(digits)) return std::nullopt;
  if (selector_part(found.stem) != found.stem) return std::nullopt;
  return found;
}

bool follows(const Numbered& first, const std::string& next, std::size_t steps) {
  const std::optional<Numbered> other = numbered(next);
  return other && other->stem == first.stem &&
         other->number == first.number + static_cast<int>(steps);
}

}  // namespace

std::string selector_part(std::string_view name) {
  std::string part(name);
  for (char& c : part) {
    if (std::string_view("*{},").find(c) != std::string_view::npos) c = '?';
  }
  if (part.starts_with("re:")) part[0] = '?';  // a module called `re`, no regular expression
  return part;
}

std::vector<PartSet> part_sets(const std::vector<std::string>& names, std::size_t prefix) {
  std::vector<PartSet> sets;
  std::vector<std::string> parts;  // those of one set
  std::vector<std::size_t> members;
  const auto flush = [&] {
    if (parts.empty()) return;
    std::string text = joined(parts, ",");
    if (parts.size() > 1) text = "{" + text + "}";
    sets.push_back({std::move(text), std::exchange(members, {})});
    parts.clear();
  };
  std::size_t length = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::optional<Numbered> first = numbered(names[i]);
    std::size_t last = i;
    while (first && last + 1 < names.size() && follows(*first, names[last + 1], last + 1 - i))
      ++last;
    std::string part = selector_part(names[i]);
    if (last > i + 1) {
      part = first->stem + "{" + std::to_string(first->number) + ".." +
             std::to_string(first->number + static_cast<int>(last - i)) + "}";
    } else {
      last = i;
    }
    const bool alone = part.starts_with('{');  // no set in a set
    if (alone) flush();
    if (parts.empty()) length = prefix;
    if (!parts.empty() && length + part.size() > longest_set) {
      flush();
      length = prefix;
    }
    length += part.size() + 1;
    parts.push_back(std::move(part));
    for (; i < last; ++i) members.push_back(i);
    members.push_back(i);
    if (alone) flush();
  }
  flush();
  return sets;
}

}  // namespace tandem
