// How many states an optimizer may keep, from the list of optimizers.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/optimizers/all_optimizers.h"

namespace tandem {

template <class Optimizer>
inline constexpr int state_count = static_cast<int>(sizeof(Optimizer::states) /
                                                    sizeof(Optimizer::states[0]));

namespace most_of_list {
template <class Kind>
constexpr std::size_t step_bytes_of() {
  if constexpr (HasRule<Kind>)
    return sizeof(typename Kind::template Step<float>);
  else
    return 0;
}
template <class... Kinds>
constexpr int states(OptimizerList<Kinds...>) {
  return std::max({HasRule<Kinds> ? state_count<Kinds> : 0 ...});
}
template <class... Kinds>
constexpr std::size_t step_bytes(OptimizerList<Kinds...>) {
  return std::max({step_bytes_of<Kinds>()...});
}
}  // namespace most_of_list

/// The most that a kind with a rule has.
inline constexpr int most_states = most_of_list::states(Optimizers{});
/// The most bytes that the factors of a step take.
inline constexpr std::size_t most_step_bytes = most_of_list::step_bytes(Optimizers{});

}  // namespace tandem
