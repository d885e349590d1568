#include "api/init/draft.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "engine/config/keys/config_value.h"

namespace tandem::api {
namespace {

std::string text_of(const GuessedKey& key) {
  std::string text;
  if (key.todo.empty()) {
    if (!key.why.empty()) text += comment(key.why);
    return text + toml_key(key.name) + " = " + key.value + "\n";
  }
  text += comment("TODO " + key.name + ": " + key.todo);
  std::istringstream values(key.value);  // one line for each of several suggestions
  for (std::string value; std::getline(values, value);)
    text += "# " + on_one_line(toml_key(key.name) + " = " + value) + "\n";
  return text;
}

/// The value without the middle of long lists.
std::string shortened(const std::string& value) {
  constexpr std::size_t most = 240, part = 110;
  if (value.size() <= most) return value;
  const auto is_inside = [&](std::size_t i) {  // a continuation byte of UTF-8
    return (static_cast<unsigned char>(value[i]) & 0xc0) == 0x80;
  };
  std::size_t end = part, begin = value.size() - part;
  while (is_inside(end)) --end;
  while (is_inside(begin)) ++begin;
  return value.substr(0, end) + " … " + value.substr(begin);
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
      if (key.todo.empty()) continue;
      const std::string before = section.name.empty() ? "" : section.name + ".";
      const bool is_open = key.value.empty() || key.value.find("\"ARRAY\"") != std::string::npos ||
                           key.value.find('\n') != std::string::npos;
      all.push_back({before + key.name, key.todo,
                     is_open ? "" : before + toml_key(key.name) + "=" + key.value});
    }
  }
  return all;
}

std::vector<ToldChoice> told_choices(const Draft& draft) {
  // First, because everything else was guessed from them.
  std::vector<ToldChoice> told = draft.files;
  const auto tell = [&](const std::string& section, const GuessedKey& key, std::string label) {
    if (!key.todo.empty()) return;
    label.resize(std::max<std::size_t>(label.size(), 10), ' ');
    std::string text = label + " ";
    if (section == "data.fields") text += key.name + " = ";
    text += shortened(key.value) + (key.why.empty() ? "" : "  (" + key.why + ")");
    told.push_back({(section.empty() ? "" : section + ".") + key.name, on_one_line(text)});
  };
  for (const auto& [section, key, label] :
       {std::tuple{"loss", "terms", "loss"}, std::tuple{"", "batch_size", "batch_size"},
        std::tuple{"", "epochs", "epochs"}, std::tuple{"optimizer", "kind", "optimizer"},
        std::tuple{"optimizer", "lr", "lr"}, std::tuple{"eval", "metrics", "metrics"}}) {
    if (const GuessedKey* found = draft.find(section, key)) tell(section, *found, label);
  }
  for (const GuessedSection& section : draft.sections) {
    if (section.name != "data.fields") continue;
    for (const GuessedKey& key : section.keys) tell(section.name, key, "field");
  }
  return told;
}

std::string to_toml(const Draft& draft, const std::string& head) {
  std::string text;
  std::istringstream lines(head);
  for (std::string line; std::getline(lines, line);) text += comment(line);
  for (const GuessedSection& section : draft.sections) {
    if (section.keys.empty()) continue;
    // Suggested lines of fields are used without change, so their section must exist.
    const bool any = section.name == "data.fields" ||
                     std::any_of(section.keys.begin(), section.keys.end(),
                                 [](const GuessedKey& key) { return key.todo.empty(); });
    if (!section.name.empty()) text += (any ? "\n[" : "\n# [") + section.name + "]\n";
    for (const GuessedKey& key : section.keys) text += text_of(key);
  }
  return text;
}

}  // namespace tandem::api
