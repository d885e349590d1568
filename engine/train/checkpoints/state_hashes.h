// Hashes that show whether two processes have the same states, computed at the speed of memory.
#pragma once

#include <string>

#include "engine/runtime/program.h"

namespace tandem {

/// A line for each parameter, statistic and moment: its name and a hash of its bytes; for a sharded
/// state the type of the whole, the only thing that ranks have in common. The hash does not protect
/// against intent.
std::string state_hashes(const StateStore& states);

}  // namespace tandem
