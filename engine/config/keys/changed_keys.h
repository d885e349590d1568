// Which keys of a run's configuration have changed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// The keys of a configuration with their values as TOML, "optimizer.lr" = "0.01", items of lists
/// by their numbers; empty where the text is not TOML.
std::map<std::string, std::string> flat_settings(std::string_view text);

/// "optimizer.lr: 0.01, now 0.02" for each key whose value differs between two resolved
/// configurations, in order of names; empty where one cannot be read.
std::vector<std::string> changed_keys(std::string_view before, std::string_view now);

}  // namespace tandem
