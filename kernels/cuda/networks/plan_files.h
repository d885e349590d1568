// Serialised plans on disk: one file for each key, written under another name and renamed into
// place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::cuda {

/// The plan; nothing where there is no file, or where it is of another key or cut short.
std::optional<std::string> read_plan_file(const std::string& folder, const std::string& key);
/// Does nothing where the folder cannot be written.
void write_plan_file(const std::string& folder, const std::string& key, std::string_view plan);

}  // namespace tandem::cuda
