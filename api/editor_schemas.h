// The JSON Schemas that editors read, in the folder `.tandem` next to train.toml and policy.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "placement/names.h"

namespace tandem::api {

/// The first line of a file: names its schema to editors of TOML.
inline constexpr std::string_view train_schema_line = "#:schema ./.tandem/train.schema.json\n";
inline constexpr std::string_view policy_schema_line = "#:schema ./.tandem/policy.schema.json\n";

/// Writes both schemas for the files in `folder`, replaces those of an earlier version, and returns
/// their paths. `names` are those of the model, which editors complete in the policy.
std::vector<std::string> write_editor_schemas(const std::string& folder,
                                              const std::vector<NameRow>& names);

}  // namespace tandem::api
