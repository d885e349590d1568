#include "importer/inputs/bindable_inputs.h"

#include <algorithm>

#include "importer/file/onnx_content.h"
#include "importer/file/tensor_data.h"

namespace tandem {
namespace importer {

bool may_have_bound_value(const onnx::ValueInfoProto& input) {
  if (!input.type().has_tensor_type()) return false;
  const onnx::TypeProto_Tensor& tensor = input.type().tensor_type();
  const auto dtype = dtype_from_onnx(tensor.elem_type());
  if (!dtype || !(is_integer(*dtype) || *dtype == DType::boolean) || !tensor.has_shape())
    return false;
  return std::all_of(tensor.shape().dim().begin(), tensor.shape().dim().end(),
                     [](const auto& dim) { return dim.has_dim_value() && dim.dim_value() == 1; });
}

}  // namespace importer

std::vector<std::string> bindable_inputs(const OnnxFile& file) {
  const OnnxFile::Content& content = file.content();
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto& input : content.model->graph().input()) {
    const bool is_fed = content.initializers.count(input.name()) == 0;
    if (is_fed && importer::may_have_bound_value(input)) names.push_back(input.name());
  }
  return names;
}

}  // namespace tandem
