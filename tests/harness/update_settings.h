// Settings with which tests try every update operator of the list.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/attributes.h"

namespace tandem::testing {

struct UpdateSettings {
  std::string name;     // "AdamUpdate", "AdamUpdate_1"
  std::string op;       // name of the update operator
  Attributes settings;  // all of them
};

/// For every type of update with a rule of its own: the defaults; every number changed; every flag
/// and choice changed, with the defaults and with changed numbers, where they fit together.
std::vector<UpdateSettings> settings_to_try();

}  // namespace tandem::testing
