// The nearest selector to one that matches nothing: each part without wildcards becomes the nearest
// part that some name has.
#include <algorithm>
#include <set>

#include "placement/match.h"

namespace tandem {
namespace {

// Parts of a path or selector, each with the border after it; braces are not divided.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{';
    depth -= c == '}';
    parts.back() += c;
    if (depth == 0 && (c == '.' || c == ':')) parts.emplace_back();
  }
  return parts;
}

bool matches_any(const std::string& selector, const std::vector<std::string>& names) {
  try {
    const Selector parsed(selector);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return parsed.matches(name) || parsed.covers_parameter(name, "");
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string nearest_selector(const std::string& wanted, const std::vector<std::string>& names) {
  if (!wanted.starts_with("re:")) {
    for (const std::string& wider : {wanted + ".**", "**." + wanted, "**." + wanted + ".**"}) {
      if (matches_any(wider, names)) return wider;
    }
    std::set<std::string> known;
    for (const std::string& name : names) {
      for (std::string part : parts_of(name)) {
        if (part.ends_with('.') || part.ends_with(':')) part.pop_back();
        known.insert(std::move(part));
      }
    }
    const std::vector<std::string> known_parts(known.begin(), known.end());
    std::string mended;
    for (std::string part : parts_of(wanted)) {
      std::string border;
      if (part.ends_with('.') || part.ends_with(':')) {
        border = part.back();
        part.pop_back();
      }
      const bool literal = part.find_first_of("*?{") == std::string::npos;
      if (literal && !known.contains(part)) {
        const std::string near = nearest_name(part, known_parts);
        if (!near.empty()) part = near;
      }
      mended += part + border;
    }
    if (mended != wanted) {
      if (matches_any(mended, names)) return mended;
      if (matches_any(mended + ".**", names)) return mended + ".**";
    }
  }
  const std::string near = nearest_name(wanted, names);
  return matches_any(near, names) ? near : "";
}

}  // namespace tandem
