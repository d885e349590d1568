// Where samples of a batch meet in a model: what it computes of one then depends on the others, and
// parts of a batch do not give what the whole batch gives.
#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace tandem::api {

/// The first node on the way to `wanted` in which samples meet. `other` is the same model for
/// another number of samples: an axis that is longer there goes along samples, and a value that
/// has none, or two, is made of several. Of what keeps the shape Softmax and CumSum along such an
/// axis are seen. Null: no such node.
const Node* find_mixed_samples(const Graph& graph, const Graph& other,
                               const std::vector<ValueId>& wanted);

/// Whether the value has exactly one axis along samples, or cannot be found in `other`.
bool has_sample_axis(const Graph& graph, const Graph& other, ValueId value);

}  // namespace tandem::api
