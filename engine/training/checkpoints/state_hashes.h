// What tells the states of two processes apart, found at the rate of memory.
#pragma once

#include <string>

#include "engine/runtime/program.h"

namespace tandem {

/// A line for each parameter, statistic and moment: its name and a hash of its bytes; of what ranks
/// share out the type of the whole, which alone they have in common. Not against intent.
std::string state_hashes(const StateStore& states);

}  // namespace tandem
