// The members of the public structs of configurations, with their keys.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tandem/train_config.h"

namespace tandem::api::members {

/// A type as an argument.
template <class T>
struct Of {
  using Type = T;
};
template <class Enum>
inline constexpr std::string_view words_of_enum = "";
template <class Struct>
inline constexpr std::string_view word_of_kind = "";

#include "api/train/train_config_members.inl"

struct Nothing {
  template <class Member>
  void operator()(const char*, Member) const {}
};
template <class T>
concept Table = requires {
  each_member(Of<T>{}, Nothing{});
};

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_choice = false;
/// Whether a type is one of several structs, as `kind` names them.
template <class T>
inline constexpr bool is_kind = false;
template <class T, class... Others>
inline constexpr bool is_choice<std::variant<T, Others...>> = true;
template <class T, class... Others>
inline constexpr bool is_kind<std::variant<T, Others...>> = !word_of_kind<T>.empty();

inline std::string below(const std::string& table, std::string_view key) {
  return table + (table.empty() ? "" : ".") + std::string(key);
}

}  // namespace tandem::api::members
