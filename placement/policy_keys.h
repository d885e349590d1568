// The keys of policy.toml.
#pragma once

#include <string>
#include <vector>

#include "engine/config/keys/config_keys.h"
#include "placement/policy.h"

namespace tandem {

/// For `tandem config keys|explain|schema` and for the checker.
const KeyTable& policy_keys();

void visit(KeyVisitor& v, PolicyRule& rule);
/// Those that a rule may have; and those of them that narrow it down.
const std::vector<std::string>& rule_keys();
const std::vector<std::string>& rule_filters();

}  // namespace tandem
