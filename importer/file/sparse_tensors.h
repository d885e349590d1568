// Sparse tensors of a file, as dense ones.
#pragma once

#include "importer/file/onnx_content.h"

namespace tandem::importer {

/// Sparse initializers become initializers, the sparse value of a Constant its value, in all graphs
/// and functions of the model. Throws Error for places outside of a tensor, and for one whose dense
/// form is larger than 1 GiB.
void make_dense(onnx::ModelProto& model, const OnnxFile::Content& content);

}  // namespace tandem::importer
