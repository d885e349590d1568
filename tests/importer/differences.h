// Tensors of cases that are JSON, and gradients against differences.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tests/importer/support.h"

namespace tandem::testing {

/// {"name", "type", "shape", "values"}: int64, bool, float32 or float64.
HostTensor tensor_of(const nlohmann::json& entry);
NamedTensors tensors_of(const nlohmann::json& entries);

/// Test failures where gradients of a graph in double differ from differences: those of a weighted
/// sum of its outputs by each real input.
void expect_gradients(const Graph& imported, const NamedTensors& feeds);

}  // namespace tandem::testing
