// Checks that the host has memory for an array of a file, before any of it is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/graph/types.h"

namespace tandem {

/// Bytes of an array, 0 where an extent is 0; none where the product of its other extents is more
/// than any memory holds: then no part of the shape can be counted with.
std::optional<std::uint64_t> bytes_of_array(DType dtype, const Shape& shape);

/// Throws Error{does_not_fit} with the file, the bytes of its arrays and the bytes that are free
/// where those are fewer. `array`: the largest or the only one, or "".
void claim_memory(std::uint64_t bytes, const std::string& file, const std::string& array,
                  const std::string& got);

}  // namespace tandem
