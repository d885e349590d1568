// The JSON Schema of policy.toml, in which editors complete the names of one model.
#pragma once

#include <string>
#include <vector>

#include "placement/names.h"

namespace tandem {

/// The schema suggests modules, operators and parameters of `rows` wherever a selector is expected,
/// their types for `op`, and the names of devices. Other texts stay allowed. Without rows it
/// suggests devices only.
std::string policy_json_schema(const std::vector<NameRow>& rows = {});

/// What selectors may be: "**", each module as "blocks.3.**", then the names.
std::vector<std::string> suggested_selectors(const std::vector<NameRow>& rows);

}  // namespace tandem
