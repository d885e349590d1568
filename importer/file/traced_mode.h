// The mode, training or inference, in which torch.export traced a normalization of the file.
#pragma once

#include <optional>

#include "onnx/onnx_pb.h"

namespace tandem::importer {

/// Whether PyTorch's module was in training mode, by the call that torch.onnx.export(dynamo=True)
/// notes in the node's metadata, else by the node's name, which contains the call's: the exporter
/// writes no training_mode. Nothing where neither shows it.
std::optional<bool> traced_in_training(const onnx::NodeProto& node);

/// Whether the nodes of a file have no training_mode whatever their mode was: it is one of
/// torch.onnx.export(dynamo=True), and nothing has rewritten it for inference.
bool omits_training_mode(const onnx::ModelProto& model);

}  // namespace tandem::importer
