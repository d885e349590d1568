#include "api/init/draft.h"

#include <algorithm>
#include <sstream>

#include "engine/training/config/config_value.h"

namespace tandem::api {
namespace {

std::string text_of(const GuessedKey& key) {
  std::string text;
  if (key.todo.empty()) {
    if (!key.why.empty()) text += comment(key.why);
    return text + toml_key(key.name) + " = " + key.value + "\n";
  }
  text += comment("TODO " + key.name + ": " + key.todo);
  if (!key.value.empty()) text += "# " + on_one_line(toml_key(key.name) + " = " + key.value) + "\n";
  return text;
}

}  // namespace

std::string on_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string comment(const std::string& text) {
  constexpr std::size_t width = 100;
  std::istringstream words(on_one_line(text));
  std::string lines, line = "#";
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > width && line != "#") {
      lines += line + "\n";
      line = "#";
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

GuessedSection& Draft::section(std::string_view name) {
  for (GuessedSection& each : sections) {
    if (each.name == name) return each;
  }
  sections.push_back({std::string(name), {}});
  return sections.back();
}

const GuessedKey* Draft::find(std::string_view section, std::string_view key) const {
  for (const GuessedSection& each : sections) {
    if (each.name != section) continue;
    for (const GuessedKey& found : each.keys) {
      if (found.name == key) return &found;
    }
  }
  return nullptr;
}

std::vector<Todo> Draft::todos() const {
  std::vector<Todo> all;
  for (const GuessedSection& section : sections) {
    for (const GuessedKey& key : section.keys) {
      if (!key.todo.empty())
        all.push_back({(section.name.empty() ? "" : section.name + ".") + key.name, key.todo});
    }
  }
  return all;
}

std::string to_toml(const Draft& draft, const std::string& head) {
  std::string text;
  std::istringstream lines(head);
  for (std::string line; std::getline(lines, line);) text += comment(line);
  for (const GuessedSection& section : draft.sections) {
    if (section.keys.empty()) continue;
    const bool any = std::any_of(section.keys.begin(), section.keys.end(),
                                 [](const GuessedKey& key) { return key.todo.empty(); });
    if (!section.name.empty()) text += (any ? "\n[" : "\n# [") + section.name + "]\n";
    for (const GuessedKey& key : section.keys) text += text_of(key);
  }
  return text;
}

}  // namespace tandem::api
