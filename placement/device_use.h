// How policies write devices: what `use` says, and the names that exist without being declared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tandem {

/// Of "0" to "63" without leading zeros, so that one device has one number.
std::optional<int> device_number(std::string_view text);

/// "cpu", "cuda:local", "cuda:N" or "emulated:N".
bool is_device_use(std::string_view text);

/// What a name stands for that nobody declared: "cpu", "cuda:local" ("gpu"), "cuda:3" ("gpu3"),
/// "emulated:3" (itself); "" where it stands for nothing.
std::string builtin_use(std::string_view name);

/// The name without declaration for a GPU that `use` names: "gpu" of "cuda:local", "gpu3" of
/// "cuda:3"; "" of anything else.
std::string builtin_name(std::string_view use);

/// A number behind one of the prefixes that no device has.
struct WrongNumber {
  std::string prefix;  // "emulated:"
  std::string mended;  // "emulated:1" of "emulated:01"; "" where there is no telling
};
std::optional<WrongNumber> wrong_number(std::string_view text,
                                        std::span<const std::string_view> prefixes);

}  // namespace tandem
