// The last layer of a model: the product that its outputs come from, which can get another width.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/fine_tuning_rules.h"

namespace tandem {

/// A parameter of a last layer under its new shape.
struct ResizedState {
  std::string name;
  Shape shape;
  std::int64_t fan_in = 1;  // how many terms the layer sums for an output element
};

/// Weights and biases of the layers that the rules name. Throws Error{usage}, all problems at once:
/// no MatMul, Gemm or Conv before the output or under that name (with the nearest one), a layer
/// that feeds more than outputs, a weight that others read, too.
std::vector<ResizedState> resized_layers(const Graph& graph, const std::vector<LayerRule>& rules);

/// Names of the weights of layers that outputs end in and that feed nothing else. Outputs that end
/// in another operator, such as a normalization, have no such layer.
std::set<std::string> weights_of_last_layers(const Graph& graph);

}  // namespace tandem
