// Looks for values that are not finite in what a checkpoint would hold.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "engine/runtime/program.h"

namespace tandem {

/// Parameters and buffers that hold an infinity, such as masks.
std::set<std::string> infinite_states(const StateStore& states);

/// A parameter or running statistic that is not finite any more can hide behind a finite loss; a
/// checkpoint of it would push out the good ones. Infinities of `allowed` states were there before
/// training. Throws Error{diverged} naming every such state.
void refuse_not_finite(const StateStore& states, std::uint64_t step,
                       const std::set<std::string>& allowed);

}  // namespace tandem
