// Follows the axis along which ranks have blocks of a value, and finds the values that are equal on
// all ranks.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

/// The axis of `to` along which equal blocks are those of `from` along `axis` (above 0), with whole
/// rows of axis 0 before it; nothing where there is none: elements of one block would be apart, or
/// axes before it are merged with it.
std::optional<std::size_t> axis_behind_reshape(const Shape& from, const Shape& to, std::size_t axis,
                                               std::int64_t ranks);

/// As above, for a permutation of axes.
std::optional<std::size_t> axis_behind_transpose(const Ints& perm, std::size_t axis);

/// By value: whether it depends only on constants and whole parameters, so that all ranks have the
/// same.
std::vector<bool> uniform_values(const Graph& graph);

}  // namespace tandem
