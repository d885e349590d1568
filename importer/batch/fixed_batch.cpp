#include "importer/batch/fixed_batch.h"

#include <algorithm>

#include "importer/file/onnx_content.h"

namespace tandem {

std::int64_t fixed_batch(const OnnxFile& file) {
  const OnnxFile::Content& content = file.content();
  for (const onnx::ValueInfoProto& input : content.model->graph().input()) {
    if (content.initializers.count(input.name()) > 0) continue;
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    if (shape.dim_size() > 0 && shape.dim(0).dim_value() > 0) return shape.dim(0).dim_value();
  }
  return 0;
}

}  // namespace tandem
