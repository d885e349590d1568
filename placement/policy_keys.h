// The table of policy.toml's keys, in the form of train.toml's table.
#pragma once

#include "engine/training/config/config_keys.h"

namespace tandem {

/// For `tandem config keys|explain|schema` and for the checker.
const KeyTable& policy_keys();

}  // namespace tandem
