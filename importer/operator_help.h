// What would help where an operator is missing.
#pragma once

#include <string>

#include "onnx/onnx_pb.h"

namespace tandem::importer {

/// "Einsum", "com.microsoft::Gelu".
std::string full_name(const onnx::NodeProto& node);

/// The words of the list for this operator, else what its domain and its versions say: another
/// opset that has it, another exporter. `opset`: the file's version of ai.onnx; 0: none.
std::string what_would_help(const onnx::NodeProto& node, int opset);

}  // namespace tandem::importer
