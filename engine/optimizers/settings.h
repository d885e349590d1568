// Settings of optimizers one by one: what a kind's `visit` declares of each, and their conversion
// to and from attributes.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "engine/graph/attributes.h"
#include "engine/optimizers/rules.h"

namespace tandem {

/// What a kind says about a setting.
struct SettingInfo {
  std::string_view key;        // in the configuration; empty: hidden
  std::string_view attribute;  // the update's, and an alias of the key; empty: none
  std::string_view list = {};  // a key whose list has it as an item, too
  NumberRange range = {};
  std::string_view choices = {};  // "a|b|c"
  std::string_view help = {};
};

/// One of "a|b|c".
constexpr std::string_view choice_at(std::string_view choices, int index) {
  for (; index > 0; --index) choices.remove_prefix(choices.find('|') + 1);
  return choices.substr(0, choices.find('|'));
}
/// The name's place, or -1.
constexpr int choice_index(std::string_view choices, std::string_view name) {
  for (int index = 0;; ++index) {
    if (choices.substr(0, choices.find('|')) == name) return index;
    if (choices.find('|') == std::string_view::npos) return -1;
    choices.remove_prefix(choices.find('|') + 1);
  }
}

/// The visitor that calls f(info, member): a double&, a bool&, or the int& of a choice.
template <class F>
struct SettingVisitor {
  F f;

  constexpr void key(SettingNames n, double& x, NumberRange range, const char* help) {
    f(SettingInfo{.key = n.key, .attribute = n.attribute, .range = range, .help = help}, x);
  }
  constexpr void key(SettingNames n, bool& x, const char* help) {
    f(SettingInfo{.key = n.key, .attribute = n.attribute, .help = help}, x);
  }
  /// `choices`: the names of its values, "a|b|c".
  template <class Choice>
  constexpr void key(SettingNames n, Choice& x, const char* choices, const char* help) {
    int index = static_cast<int>(x);
    f(SettingInfo{.key = n.key, .attribute = n.attribute, .choices = choices, .help = help}, index);
    x = static_cast<Choice>(index);
  }
  /// Two keys, and `list` with both of them.
  constexpr void pair(const char* list, const char* first, double& x, const char* second, double& y,
                      NumberRange range, const char* help) {
    f(SettingInfo{.key = first, .attribute = first, .list = list, .range = range, .help = help}, x);
    f(SettingInfo{.key = second, .attribute = second, .list = list, .range = range, .help = help},
      y);
  }
  constexpr void triple(const char* list, const char* first, double& x, const char* second,
                        double& y, const char* third, double& z, NumberRange range,
                        const char* help) {
    pair(list, first, x, second, y, range, help);
    f(SettingInfo{.key = third, .attribute = third, .list = list, .range = range, .help = help}, z);
  }
};

/// f(info, member) for each setting, in order; f may change the members.
template <class Settings, class F>
constexpr void each_setting(Settings& settings, F f) {
  SettingVisitor<F> visitor{f};
  settings.visit(visitor);
}

/// The settings of a node of an update.
template <class Settings>
Settings settings_of(const Attributes& attributes) {
  Settings settings;
  each_setting(settings, [&](const SettingInfo& info, auto& x) {
    using Member = std::remove_reference_t<decltype(x)>;
    if (info.attribute.empty()) return;
    if constexpr (std::same_as<Member, double>)
      x = attributes.number(info.attribute);
    else if constexpr (std::same_as<Member, bool>)
      x = attributes.flag(info.attribute);
    else
      x = choice_index(info.choices, attributes.text(info.attribute));
  });
  return settings;
}

inline AttributeValue attribute_of(const SettingInfo&, double x) { return x; }
inline AttributeValue attribute_of(const SettingInfo&, bool x) { return std::int64_t{x}; }
inline AttributeValue attribute_of(const SettingInfo& info, int choice) {
  return std::string(choice_at(info.choices, choice));
}

/// The settings that an update has, as attributes.
template <class Settings>
Attributes attributes_of(Settings settings) {
  Attributes attributes;
  each_setting(settings, [&](const SettingInfo& info, const auto& x) {
    if (!info.attribute.empty()) attributes.set(info.attribute, attribute_of(info, x));
  });
  return attributes;
}

/// Our own mistake, which must not become the update of another kind. Throws Error{runtime}.
[[noreturn]] void fail_update(std::string_view op, const char* what);

/// f(rule) with the settings of a node; `op` is that of a kind. Throws where no rule fits.
template <class T, class F>
auto with_rule(std::string_view op, const Attributes& node, F f) {
  using Result = decltype(f(Rule<Sgd, 0u, T>{}));
  Result result{};
  bool found = false;
  const auto of_kind = [&]<class Kind, std::size_t... i>(std::type_identity<Kind>,
                                                         std::index_sequence<i...>) {
    if constexpr (HasRule<Kind>) {
      if (found || op != Kind::op) return;
      const auto settings = settings_of<typename Kind::Settings>(node);
      const auto try_rule = [&](auto rule) {
        if (found || kept_states<Kind>(settings) != decltype(rule)::set) return;
        rule.settings = settings;
        result = f(rule);
        found = true;
      };
      (try_rule(Rule<Kind, Kind::state_sets[i] & all_states<Kind>, T>{}), ...);
    }
  };
  [&]<class... Kinds>(OptimizerList<Kinds...>) {
    (of_kind(std::type_identity<Kinds>{}, std::make_index_sequence<rule_lists::sets<Kinds>>{}),
     ...);
  }(Optimizers{});
  if (!found) fail_update(op, "has no rule");
  return result;
}

}  // namespace tandem
