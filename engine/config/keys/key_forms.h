// Members of configurations as values of keys: their types, and how they are read and written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/config/keys/config_reader.h"

namespace tandem {

/// A value that a file has for a key.
struct Found {
  const TableReader& table;
  std::string_view key;
  const ConfigValue& value;

  void report(std::string message, std::string expected = "", std::string got = "",
              std::string fix = "") const;
};

/// A member as the value of a key. It refers to the member.
struct KeyForm {
  unsigned type = 0;  // ValueTypes, or-ed
  /// Takes a value of one of these types; reports one that does not fit.
  std::function<void(const Found&)> read = {};
  std::function<std::string()> write = {};  // as TOML; "" where there is nothing
  std::string allowed = {};                 // "a|b|c" for strings
};

// Forms that follow from the type of a member.
KeyForm form(bool& member);
KeyForm form(double& member);
KeyForm form(std::int64_t& member);
KeyForm form(int& member);
KeyForm form(std::uint64_t& member);
KeyForm form(std::string& member);
KeyForm form(std::vector<std::string>& member);
KeyForm form(std::vector<double>& member);  // one number, or a list
KeyForm form(Duration& member);
KeyForm form(std::vector<Duration>& member);
inline KeyForm form(KeyForm&& ready) { return std::move(ready); }

/// One of the words in "a|b|c", by its number.
KeyForm word(std::string_view words, std::function<std::size_t()> number,
             std::function<void(std::size_t)> take);
/// A member whose values, counted from 0, mean the words in their order.
template <class T>
KeyForm choice(T& member, std::string_view words) {
  return word(
      words, [&member] { return static_cast<std::size_t>(member); },
      [&member](std::size_t number) { member = static_cast<T>(number); });
}
/// The first word: true.
inline KeyForm true_or_false(bool& member, std::string_view words) {
  return word(
      words, [&member] { return member ? 0 : 1; },
      [&member](std::size_t number) { member = number == 0; });
}
template <class Enum>
requires std::is_enum_v<Enum> KeyForm form(Enum& member) { return choice(member, names_of<Enum>); }

/// A member that may be unset.
template <class T>
KeyForm form(std::optional<T>& member) {
  T any{};
  return {form(any).type, [&member](const Found& found) { form(member.emplace()).read(found); },
          [&member] { return member ? form(*member).write() : std::string(); }, form(any).allowed};
}

KeyForm path(std::string& member);      // made absolute; "" = none
KeyForm selector(std::string& member);  // its text
KeyForm text_or_none(std::string& member);

// TOML text of values: "[ a, b ]" and "{ key = a, … }".
std::string toml_list(const std::vector<std::string>& values);
std::string toml_list_of_strings(std::vector<std::string> values);
std::string toml_table(const std::vector<std::pair<std::string, std::string>>& values);

/// The texts of a list's items, as a list.
template <class Item>
std::string toml_texts(const std::vector<Item>& list, std::string Item::*text) {
  std::vector<std::string> texts;
  for (const Item& item : list) texts.push_back(item.*text);
  return toml_list_of_strings(std::move(texts));
}

}  // namespace tandem
