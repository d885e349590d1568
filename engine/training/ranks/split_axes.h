// Where the axis goes along which ranks have blocks of a value, and which values all ranks have
// alike.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

/// The axis of `to` along which equal blocks are those of `from` along `axis` (above 0), whole rows
/// of axis 0 in front; nothing where there is none: elements of one block would be apart, or axes
/// in front of it become one with it.
std::optional<std::size_t> axis_behind_reshape(const Shape& from, const Shape& to, std::size_t axis,
                                               std::int64_t ranks);

/// The same of a permutation of axes.
std::optional<std::size_t> axis_behind_transpose(const Ints& perm, std::size_t axis);

/// By value: it follows from constants and whole parameters alone, so that all ranks have the same.
std::vector<bool> uniform_values(const Graph& graph);

}  // namespace tandem
