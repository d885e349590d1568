// Nodes that change no element of what they read.
#pragma once

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Whether the node only moves or converts what it reads first.
bool is_move(const onnx::NodeProto& node);

}  // namespace tandem::importer
