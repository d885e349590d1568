// Tensors and attributes of nodes as the scripts that made expected values write them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/graph/host_tensor.h"
#include "onnx/onnx_pb.h"

namespace tandem::testing {

/// {"shape": […], "type": "float64", "values": […]}
HostTensor tensor_of(const nlohmann::json& entry);
void set_attribute(onnx::NodeProto& node, const std::string& name, const nlohmann::json& value);

}  // namespace tandem::testing
