// How policies write devices: what `use` says, and the names that exist without being declared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device_family.h"

namespace tandem {

/// Reads "0" to "63" without leading zeros, so that one device has one number.
std::optional<int> device_number(std::string_view text);

/// "cpu", "cuda:local", "cuda:N" or "emulated:N".
bool is_device_use(std::string_view text);

/// What an undeclared name means: "cpu", "cuda:local" (gpu), "cuda:3" (gpu3), "emulated:3"
/// (itself); "" where it means nothing.
std::string builtin_use(std::string_view name);

/// The undeclared name for a device that `use` names: gpu for "cuda:local", gpu3 for "cuda:3"; ""
/// for anything else.
std::string builtin_name(std::string_view use);

/// "cuda:2" for "cuda:local" in a process whose own device has the number 2; else `use`.
std::string numbered_use(const std::string& use, int local);
/// 2 of "cuda:2".
int number_of_use(std::string_view use);

/// A number after one of the prefixes that no device has.
struct WrongNumber {
  std::string prefix;  // "emulated:"
  std::string mended;  // "emulated:1" for "emulated:01"; "" where the meaning is unclear
};
std::optional<WrongNumber> wrong_number(std::string_view text,
                                        const std::vector<std::string>& prefixes);

// What messages suggest.

std::vector<std::string> name_prefixes();      // "gpu", "emulated:"
std::vector<std::string> use_prefixes();       // "cuda:", "emulated:"
std::vector<std::string> known_names();        // "cpu", "gpu", "gpu0", "emulated:0"
std::vector<std::string> known_uses();         // "cpu", "cuda:local", "cuda:0", "emulated:0"
std::string default_accelerator();             // "gpu": the first that has a name
std::string use_without_hardware(int number);  // "emulated:0"
/// "cpu, cuda:local, cuda:N or emulated:N"; `own` follows the use of this process's own device.
std::string use_forms(const std::string& own = "");
/// "`gpu` (this process's own accelerator), `gpu0` to `gpu63`, `emulated:0` to `emulated:63`"
std::string name_ranges();
/// "a GPU"
std::string noun_with_article(const DeviceFamily& family);
/// The nouns of the families that have a property, "GPU or TPU".
std::string nouns_of(bool DeviceFamily::*property, bool with_article = false);

}  // namespace tandem
