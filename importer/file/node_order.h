// Brings the nodes of a file into an order in which each value is made before it is read.
#pragma once

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Some converters append nodes whose results earlier nodes read, and onnxruntime runs such files:
/// these nodes move to the front of their readers, and others keep their order. Inner graphs down
/// to `nesting` are ordered as well. A graph with a circle stays as it is. Of an unchecked file.
void order_nodes(onnx::GraphProto& graph, int nesting);

}  // namespace tandem::importer
