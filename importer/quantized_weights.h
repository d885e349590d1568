// Which numbers of a file are weights of few bits, which operators read as whole numbers.
#pragma once

#include "importer/file/onnx_content.h"
#include "importer/import_graph.h"

namespace tandem::importer {

/// Operators of dynamic and static quantisation, tables, and packed weights of com.microsoft.
QuantizedWeights quantized_weights(const OnnxFile::Content& file);

}  // namespace tandem::importer
