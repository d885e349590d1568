// How policies write devices: what `use` says, and the names that exist without being declared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

/// Reads "0" to "63" without leading zeros, so that one device has one number.
std::optional<int> device_number(std::string_view text);

/// "cpu", "cuda:local", "cuda:N" or "emulated:N".
bool is_device_use(std::string_view text);

/// What an undeclared name means: "cpu", "cuda:local" ("gpu"), "cuda:3" ("gpu3"), "emulated:3"
/// (itself); "" where it means nothing.
std::string builtin_use(std::string_view name);

/// The undeclared name for a GPU that `use` names: "gpu" for "cuda:local", "gpu3" for "cuda:3"; ""
/// for anything else.
std::string builtin_name(std::string_view use);

/// A number after one of the prefixes that no device has.
struct WrongNumber {
  std::string prefix;  // "emulated:"
  std::string mended;  // "emulated:1" for "emulated:01"; "" where the meaning is unclear
};
std::optional<WrongNumber> wrong_number(std::string_view text,
                                        std::span<const std::string_view> prefixes);

}  // namespace tandem
