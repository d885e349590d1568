#include "placement/edit.h"

#include <algorithm>
#include <optional>

#include "engine/graph/text.h"
#include "placement/device_binding.h"
#include "placement/device_names.h"
#include "placement/policy.h"
#include "placement/policy_keys.h"
#include "placement/policy_text.h"
#include "placement/toml_text.h"

namespace tandem {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view remark_keys[] = {"at", "need", "optional", "why"};

template <class Keys>
bool contains(const Keys& keys, std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

[[noreturn]] void no_such_rule(const PolicyText& editor, const std::string& path,
                               const PolicyEdit& edit) {
  std::vector<std::string> selectors;
  const ConfigValue tree = editor.tree();
  if (const ConfigValue* rules = tree.find("rules")) {
    for (const ConfigValue& rule : rules->items) {
      if (const ConfigValue* selector = rule.find("at")) selectors.push_back(selector->text);
    }
  }
  Diagnostic d{.message = "no rule has this selector and these filters", .file = path};
  d.path = edit.at;
  d.fix = did_you_mean(nearest_name(edit.at, selectors));
  throw Error(ErrorKind::usage, std::move(d));
}

std::string rule_text(const PolicyEdit& edit) {
  std::string text = "{ at = " + toml_string(edit.at);
  for (const Pairs* pairs : {&edit.filters, &edit.set}) {
    for (const auto& [key, value] : *pairs) text += ", " + key + " = " + rule_value(key, value);
  }
  return text + " }";
}

// A key has one value; those that find a rule are filters.
void check_keys(const PolicyEdit& edit, bool fresh) {
  std::vector<std::string_view> said;
  const auto say = [&](std::string_view key) {
    if (contains(said, key)) {
      throw Error(ErrorKind::usage, Diagnostic{.message = "this key of the rule is given twice",
                                               .path = std::string(key)});
    }
    said.push_back(key);
  };
  if (fresh) say("at");
  for (const auto& [key, value] : edit.filters) {
    if (!contains(rule_filters(), key)) {
      throw Error(ErrorKind::usage, Diagnostic{.message = "this is no filter of a rule",
                                               .path = key,
                                               .expected = "op, min, after or before",
                                               .fix = "--set gives a rule its attributes"});
    }
    say(key);
  }
  if (!fresh) said.clear();
  for (const auto& [key, value] : edit.set) say(key);
}

bool sets_nothing(const ConfigValue& rule) {
  return std::none_of(rule.members.begin(), rule.members.end(), [](const auto& member) {
    return !contains(rule_filters(), member.key) && !contains(remark_keys, member.key);
  });
}

[[noreturn]] void refuse_empty_rule(const ConfigValue& rule, const PolicyEdit& edit) {
  std::string keys;
  for (const std::string& key : edit.clear) keys += (keys.empty() ? "`" : ", `") + key + "`";
  Diagnostic d = at(rule.where, edit.at, "without " + keys + " this rule would set nothing");
  d.fix = "--remove removes the whole rule, or --set something else";
  throw Error(ErrorKind::usage, std::move(d));
}

// Checks only device names that the edit writes: older rules may name what only a run's `--device`
// binds.
void check_devices(const std::string& text, const std::string& path, const PolicyEdit& edit) {
  constexpr std::string_view device_keys[] = {"on", "run", "param", "state"};
  const PolicyText editor(text, path);
  const std::optional<std::size_t> index = editor.find_rule(edit);
  if (!index) return;
  const ConfigValue tree = editor.tree();
  const std::string list = "rules." + std::to_string(*index) + ".";
  std::vector<Diagnostic> errors;
  std::vector<DeviceBinding> bindings = parse_policy(text, path, {}, &errors).devices;
  for (DeviceBinding& device : parse_device_arguments(edit.devices))
    bindings.push_back(std::move(device));
  const DeviceNames names(bindings, {}, 0, errors);
  errors.clear();  // those in other lines
  for (const auto& [key, value] : edit.set) {
    if (!contains(device_keys, key)) continue;
    const ConfigValue& set = *tree.find("rules")->items[*index].find(key);
    if (auto d = names.unknown(set.text, set.where, list + key)) {
      d->expected += ", or bind it with --device";
      errors.push_back(std::move(*d));
    }
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
}

}  // namespace

std::string edit_policy(std::string_view text, const std::string& path, const PolicyEdit& edit) {
  PolicyText editor(text, path);
  editor.list_start("rules");  // refuses other forms
  editor.add_version();
  const std::optional<std::size_t> rule = editor.find_rule(edit);
  check_keys(edit, !rule);
  if (!rule && (edit.remove || !edit.clear.empty())) no_such_rule(editor, path, edit);
  for (const std::string& key : edit.clear) {
    rule_value(key, "");  // refuses unknown keys
    editor.clear(*rule, key);
  }
  if (edit.remove) {
    editor.remove(*rule);
  } else if (rule) {
    for (const auto& [key, value] : edit.set) editor.set(*rule, key, rule_value(key, value));
    const ConfigValue now = editor.tree();
    const ConfigValue& left = now.find("rules")->items[*rule];
    if (sets_nothing(left) && !edit.clear.empty()) refuse_empty_rule(left, edit);
  } else {
    editor.append(rule_text(edit));
  }
  const std::string after = editor.finish(text);
  check_devices(after, path, edit);
  return after;
}

std::vector<int> comments_in_auto(std::string_view text, const std::string& path) {
  const std::size_t start = PolicyText(text, path).list_start("auto");
  if (start == std::string::npos) return {};
  const std::size_t end = end_of_value(text, start);
  std::vector<int> lines;
  int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + start, '\n'));
  for (std::size_t i = start; i < end;) {
    if (text[i] == '"' || text[i] == '\'') {
      const std::size_t behind = end_of_value(text, i);
      line += static_cast<int>(std::count(text.begin() + i, text.begin() + behind, '\n'));
      i = behind;
    } else if (text[i] == '#') {
      const std::size_t behind = std::min(text.find('\n', i), end);
      if (!is_count_of_auto(text.substr(i, behind - i))) lines.push_back(line);
      i = behind;
    } else {
      line += text[i] == '\n';
      ++i;
    }
  }
  return lines;
}

std::string replace_auto(std::string_view text, const std::string& path,
                         const std::vector<std::string>& lines) {
  PolicyText editor(text, path);
  editor.add_version();
  std::string list = "[";
  for (const std::string& line : lines) list += "\n  " + line;
  editor.replace_list("auto", list + (lines.empty() ? "]" : "\n]"));
  return editor.finish(text);
}

}  // namespace tandem
