#include "api/export/peft_modules.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

namespace tandem::api {
namespace {

/// Whether another one of `modules` ends with the path.
template <class Modules>
bool is_end_of_another(const std::string& path, const Modules& modules) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const std::string& module) { return module.ends_with("." + path); });
}

/// The text as a regular expression that matches only this text.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

bool is_saved_by(const std::string& module, const std::string& entry) {
  for (std::size_t end = module.find('.');; end = module.find('.', end + 1)) {
    if (module.substr(0, end).ends_with(entry)) return true;
    if (end == std::string::npos) return false;
  }
}

bool is_saved_by(const std::string& module, const std::set<std::string>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const std::string& entry) { return is_saved_by(module, entry); });
}

std::set<std::string> least_entries(const std::set<std::string>& modules) {
  std::set<std::string> least;
  for (const std::string& module : modules) {
    const bool is_meant = std::any_of(
        modules.begin(), modules.end(),
        [&](const std::string& other) { return other != module && is_saved_by(module, other); });
    if (!is_meant) least.insert(module);
  }
  return least;
}

PeftJson target_entries(const std::set<std::string>& targets, const std::set<std::string>& known) {
  std::set<std::string> others;
  std::set_difference(known.begin(), known.end(), targets.begin(), targets.end(),
                      std::inserter(others, others.end()));
  const bool is_ambiguous = std::any_of(targets.begin(), targets.end(), [&](const auto& target) {
    return is_end_of_another(target, others);
  });
  if (!is_ambiguous) return targets;
  std::string expression;
  for (const std::string& target : targets)
    expression += (expression.empty() ? "" : "|") + escaped(target);
  return expression;
}

template <class Number>
PeftJson pattern_entries(const std::map<std::string, Number>& numbers, Number common) {
  std::vector<std::string> paths;
  for (const auto& [path, number] : numbers) paths.push_back(path);
  const bool any = std::any_of(numbers.begin(), numbers.end(),
                               [&](const auto& each) { return each.second != common; });
  const bool all = any && std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
                     return is_end_of_another(path, paths);
                   });
  if (all) {
    std::stable_sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
      return a.size() > b.size();
    });
  }
  PeftJson entries = PeftJson::object();
  for (const std::string& path : paths) {
    if (all || numbers.at(path) != common) entries[path] = numbers.at(path);
  }
  return entries;
}

template PeftJson pattern_entries(const std::map<std::string, std::int64_t>&, std::int64_t);
template PeftJson pattern_entries(const std::map<std::string, double>&, double);

}  // namespace tandem::api
