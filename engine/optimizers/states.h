// How many states an optimizer may keep.
#pragma once

namespace tandem {

/// A kind has at most so many.
inline constexpr int most_states = 3;

}  // namespace tandem
