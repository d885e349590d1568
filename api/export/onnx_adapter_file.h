// Tensors as the bytes of an .onnx_adapter file, which onnxruntime loads next to a model.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"

namespace tandem::api {

/// A FlatBuffer as onnxruntime's adapter_schema.fbs describes it, with the file identifier "TORT":
///   Adapter {format_version, adapter_version, model_version: int; parameters: [Parameter]}
///   Parameter {name: string; dims: [int64]; data_type: int; raw_data: [uint8]}
/// Tensors are of a float type and keep their order. Throws Error{usage} where the file would have
/// 2 GiB or more, which its offsets cannot address.
std::string onnx_adapter_bytes(const std::vector<NamedTensor>& tensors);

}  // namespace tandem::api
