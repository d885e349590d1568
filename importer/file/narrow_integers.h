// Weights of 4 and 2 bits, as bytes: one a number, or as the file has them.
#pragma once

#include <string>

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Initializers and values of Constant nodes of INT4, UINT4, INT2 and UINT2 become INT8 and UINT8
/// where only DequantizeLinear reads them, so that no range depends on the type; in all graphs of
/// the model, except for initializers that are packed weights. Throws Error where a tensor does not
/// hold as many elements as it says.
void widen_narrow_integers(onnx::ModelProto& model, const OnnxFile::Content& content,
                           const PackedWeights& packed);

/// Whether the tensor is of INT4 or UINT4.
bool is_nibbles(const onnx::TensorProto& tensor);
/// Such a tensor as uint8, with two elements in a byte: its last axis has half as many. An even
/// number of elements in a row.
HostTensor read_nibbles(const onnx::TensorProto& tensor, const OnnxFile::Content& content,
                        const std::string& where);

}  // namespace tandem::importer
