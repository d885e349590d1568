// Settings under which tests try every kind of update of the list.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/attributes.h"

namespace tandem::testing {

struct UpdateSettings {
  std::string name;     // "AdamUpdate", "AdamUpdate_1"
  std::string op;       // of an update
  Attributes settings;  // all of them
};

/// Of every kind: the defaults; every number changed; every flag and choice changed, with the
/// defaults and with changed numbers, where they fit together.
std::vector<UpdateSettings> settings_to_try();

}  // namespace tandem::testing
