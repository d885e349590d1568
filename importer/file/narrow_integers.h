// Weights of 4 and 2 bits, as bytes.
#pragma once

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Initializers and values of Constant nodes of INT4, UINT4, INT2 and UINT2 become INT8 and UINT8
/// where only DequantizeLinear reads them, so that no range depends on the type; in all graphs of
/// the model. Throws Error where a tensor does not hold as many elements as it says.
void widen_narrow_integers(onnx::ModelProto& model, const OnnxFile::Content& content);

}  // namespace tandem::importer
