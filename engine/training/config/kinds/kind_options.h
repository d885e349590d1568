// Options that a kind of loss or metric has besides the keys of all kinds: their description by the
// kind, and their values in a configuration.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/training/config/config_keys.h"

namespace tandem {

class KeyVisitor;  // engine/training/config/key_visitor.h

struct OptionInfo {
  std::string_view key;
  unsigned type = number_value;  // ValueTypes; with list_value its items are numbers
  std::string_view fallback;     // TOML; "" or "(in words)": none; "required"
  std::string_view help;
  double low = -1e300, high = 1e300;
  std::string_view allowed = "";    // "a|b|c" for strings
  std::string_view item_help = "";  // for the items of lists
};

using OptionValue = std::variant<std::int64_t, double, bool, std::string, std::vector<double>>;
/// Those set, and those with a default, by key.
using OptionMap = std::map<std::string, OptionValue, std::less<>>;

/// The keys of a kind's options.
void visit_options(KeyVisitor& v, const std::vector<OptionInfo>& infos, OptionMap& options);
/// What a configuration without any of them has.
OptionMap default_options(const std::vector<OptionInfo>& infos);

}  // namespace tandem
