// Tensors of cases that are JSON, and gradients against differences.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tests/importer/support.h"

namespace tandem::testing {

/// The tensors of a list of {"name", "type", "shape", "values"}, as tensor_of reads them.
NamedTensors tensors_of(const nlohmann::json& entries);

/// Test failures if names or types differ, or a number by more than bound * (1 + |number|).
void expect_near(const NamedTensors& got, const NamedTensors& want, double bound);

/// Test failures if gradients of a graph in double differ from differences, both of a weighted sum
/// of its outputs by each real input.
void expect_gradients(const Graph& imported, const NamedTensors& feeds);

}  // namespace tandem::testing
