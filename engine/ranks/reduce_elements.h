// The reduction of several ranks' elements in the host's memory, in an order that depends only on
// their number.
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

/// to[i] = the reduction of from[r][i] over all r, in the order in which pairs of ranks add up.
/// With p, the largest power of two up to their number, each rank r takes in r + p where there is
/// one, then each r below p / 2 takes in r + p / 2, and so on down to 1. float16 and bfloat16 are
/// reduced in float32 and rounded once, integers wrap around, a NaN stays one in maximum and
/// minimum. `to` may be one of `from`.
void reduce_elements(void* to, std::span<const void* const> from, std::size_t count, DType dtype,
                     Reduction reduction);

/// Turns sums over `ranks` ranks into means; float32 and float64 only.
void divide_elements(void* sums, std::size_t count, DType dtype, int ranks);

}  // namespace tandem
