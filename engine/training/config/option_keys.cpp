#include "engine/training/config/option_keys.h"

#include <algorithm>

namespace tandem {

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? std::string() : std::string(separator)) + part;
  return text;
}

void say(std::vector<Said>& all, std::string_view text, std::string_view kind) {
  auto found = std::find_if(all.begin(), all.end(), [&](const Said& s) { return s.text == text; });
  if (found == all.end()) found = all.insert(all.end(), {std::string(text), {}});
  found->kinds.emplace_back(kind);
}

Gathered& gathered(std::vector<Gathered>& all, std::string_view key) {
  for (Gathered& known : all) {
    if (known.key == key) return known;
  }
  return all.emplace_back(Gathered{.key = std::string(key)});
}

std::string help_of(const Gathered& key) {
  std::vector<std::string> parts;
  for (const Said& help : key.helps)
    parts.push_back(help.text + " (" + joined(help.kinds, ", ") + ")");
  return joined(parts, "; ");
}

std::string fallback_of(const std::vector<Said>& fallbacks) {
  if (fallbacks.size() == 1) return fallbacks[0].text;
  std::vector<std::string> parts;
  for (const Said& fallback : fallbacks) {
    const std::string text = fallback.text.empty() ? "none" : fallback.text;
    parts.push_back(text + " for " + joined(fallback.kinds, ", "));
  }
  return "(" + joined(parts, "; ") + ")";
}

}  // namespace tandem
