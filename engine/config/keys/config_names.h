// The names of the configuration's choices: keys offer them, files hold them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "engine/config/run_config.h"

namespace tandem {

template <class Enum>
struct NamedChoice {
  Enum value;
  std::string_view name;
};
template <class Enum>
inline constexpr auto choices_of = [] {
  constexpr std::string_view names = names_of<Enum>;
  std::array<NamedChoice<Enum>, std::count(names.begin(), names.end(), '|') + 1> choices{};
  std::string_view rest = names;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::size_t end = rest.find('|');
    choices[i] = {static_cast<Enum>(i), rest.substr(0, end)};
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return choices;
}();

template <class Enum>
constexpr std::string_view choice_name(Enum value) {
  return choices_of<Enum>[static_cast<std::size_t>(value)].name;
}

}  // namespace tandem
