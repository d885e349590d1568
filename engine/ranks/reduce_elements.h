// The reduction of several ranks' elements in the host's memory, always in the ranks' order.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "engine/graph/types.h"
#include "engine/ranks/communicator.h"

namespace tandem {

/// Why the type is not reduced in that way, or nothing: no sum of booleans, no mean of integers.
std::optional<std::string> reduction_problem(DType dtype, Reduction reduction);

/// to[i] = from[0][i] ⊕ from[1][i] ⊕ …, from left to right. float16 and bfloat16 are reduced in
/// float32 and rounded once, integers wrap around, a NaN stays one in maximum and minimum. `to` may
/// be one of `from`.
void reduce_elements(void* to, std::span<const void* const> from, std::size_t count, DType dtype,
                     Reduction reduction);

}  // namespace tandem
