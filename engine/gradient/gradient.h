// The reverse walk: appends the backward graph of some values to a forward graph.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"

namespace tandem {

/// The gradient `dy` (type of `value`) with which the walk starts at `value`.
struct GradientSeed {
  ValueId value;
  ValueId dy;
};

/// Appends nodes of phase backward to the builder's graph. Returns one value per entry of `wanted`:
/// its gradient, or -1 where no path leads from it to a seed. Nodes get the path and origins of the
/// forward node that they come from. Throws Error{usage} that lists every operator whose gradient
/// is missing and needed, with the reason.
std::vector<ValueId> add_gradients(GraphBuilder& builder, std::span<const GradientSeed> seeds,
                                   std::span<const ValueId> wanted);

/// What blocks training: nodes on a path from `wanted` to `values` without a gradient.
std::vector<Diagnostic> missing_gradients(const Graph& graph, std::span<const ValueId> values,
                                          std::span<const ValueId> wanted);

}  // namespace tandem
