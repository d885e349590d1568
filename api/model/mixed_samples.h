// Finds where samples of a batch interact in a model: there the result for one sample depends on
// the others, and computing parts of a batch does not give the same as the whole batch.
#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace tandem::api {

/// The first node on the way to `wanted` in which samples interact. `other` is the same model for
/// another number of samples: an axis whose length differs there is the sample axis, and a value
/// that has no such axis, or two, combines several samples. Among operators that keep the shape,
/// Softmax, LogSoftmax and CumSum along such an axis are detected. Null: no such node.
const Node* find_mixed_samples(const Graph& graph, const Graph& other,
                               const std::vector<ValueId>& wanted);

/// Whether the value has exactly one sample axis, or cannot be found in `other`.
bool has_sample_axis(const Graph& graph, const Graph& other, ValueId value);

}  // namespace tandem::api
