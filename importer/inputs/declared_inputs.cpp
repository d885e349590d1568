#include "importer/inputs/declared_inputs.h"

#include "importer/file/onnx_content.h"
#include "importer/file/tensor_data.h"
#include "importer/inputs/bindable_inputs.h"
#include "importer/inputs/bindings.h"

namespace tandem {

std::vector<DeclaredInput> declared_inputs(const OnnxFile& file) {
  const OnnxFile::Content& content = file.content();
  std::vector<DeclaredInput> inputs;
  for (const onnx::ValueInfoProto& info : content.model->graph().input()) {
    if (content.initializers.count(info.name()) > 0) continue;
    inputs.push_back({.name = info.name(),
                      .dtype = importer::dtype_from_onnx(info.type().tensor_type().elem_type()),
                      .dims = importer::dims_of(info),
                      .may_have_value = importer::may_have_bound_value(info)});
  }
  return inputs;
}

}  // namespace tandem
