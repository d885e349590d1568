// Weights that a file keeps as attributes of a node: those of ai.onnx.ml's linear models.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "engine/graph/host_tensor.h"
#include "onnx/onnx_pb.h"

namespace tandem::importer {

struct AttributeWeight {
  std::string output;     // the first one of the node
  std::string attribute;  // "coefficients"
  /// The file has two rows, the first of which is minus the second; the initializer has only the
  /// second.
  bool mirrored = false;
};

/// By the weight's name everywhere but in the file: "classifier:coefficients".
using AttributeWeights = std::unordered_map<std::string, AttributeWeight>;

/// Gives each node of the main graph whose attributes are weights one more input for each of them,
/// after its own inputs, and the graph an initializer: there it is a parameter like all others. For
/// a checked file, since it relies on the number of the operators' inputs.
AttributeWeights lift_attribute_weights(onnx::ModelProto& model);

/// The weight that the node reads as its input `i`; null where that is none.
const AttributeWeight* attribute_weight(const AttributeWeights& weights,
                                        const onnx::NodeProto& node, int i);

/// The node as the file has it.
onnx::NodeProto without_attribute_weights(const AttributeWeights& weights,
                                          const onnx::NodeProto& node);

/// Takes the inputs and initializers away again; `value_of` gives what the attributes become.
void return_attribute_weights(
    onnx::ModelProto& model, const AttributeWeights& weights,
    const std::function<HostTensor(const onnx::TensorProto& initializer)>& value_of);

}  // namespace tandem::importer
