// Weights that a file keeps in Constant nodes of its main graph.
#pragma once

#include <functional>
#include <string>

#include "importer/weights/attribute_weights.h"

namespace tandem::importer {

/// Why such a weight does not train, unless a rule names it.
inline constexpr const char* constant_weight_reason = "a Constant node, not an initializer";

/// Makes an initializer of each Constant node whose tensor is, moved perhaps, in the place of a
/// weight, or that has a name of its own and is added, multiplied, joined or running statistics.
/// The node keeps its place, under another name.
AttributeWeights lift_constant_weights(onnx::ModelProto& model);

bool is_constant_weight(const AttributeWeights& weights, const std::string& name);

/// Gives the Constant nodes their names back, with the values that `value_of` has for them.
void return_constant_weights(
    onnx::ModelProto& model, const AttributeWeights& weights,
    const std::function<HostTensor(const onnx::TensorProto& initializer)>& value_of);

}  // namespace tandem::importer
