#include "importer/training_info/contents.h"

#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

// Everything of a model but its graph and what it is trained by.
OnnxFile::Content without_graph(const OnnxFile::Content& file) {
  OnnxFile::Content content;
  content.path = file.path;
  content.folder = file.folder;
  content.limits = file.limits;
  content.opsets = file.opsets;
  content.functions = file.functions;
  content.external = file.external;
  content.model = std::make_shared<onnx::ModelProto>();
  content.model->set_ir_version(file.model->ir_version());
  content.model->set_producer_name(file.model->producer_name());
  content.model->set_producer_version(file.model->producer_version());
  *content.model->mutable_opset_import() = file.model->opset_import();
  *content.model->mutable_metadata_props() = file.model->metadata_props();
  *content.model->mutable_functions() = file.model->functions();
  return content;
}

void append(const onnx::GraphProto& from, onnx::GraphProto& to) {
  to.mutable_node()->MergeFrom(from.node());
  to.mutable_input()->MergeFrom(from.input());
  to.mutable_output()->MergeFrom(from.output());
  to.mutable_value_info()->MergeFrom(from.value_info());
  to.mutable_metadata_props()->MergeFrom(from.metadata_props());
  for (const onnx::TensorProto& tensor : from.initializer()) {
    onnx::TensorProto& type = *to.add_initializer();
    type.set_name(tensor.name());
    type.set_data_type(tensor.data_type());
    *type.mutable_dims() = tensor.dims();
    if (!tensor.has_data_location()) continue;
    type.set_data_location(tensor.data_location());
    *type.mutable_external_data() = tensor.external_data();
  }
}

void read_initializers(const onnx::GraphProto& graph, const OnnxFile::Content& file,
                       OnnxFile::Content& to) {
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (!dtype_from_onnx(tensor.data_type())) continue;  // refused where a node reads it
    to.initializers.emplace(tensor.name(), read_tensor(tensor, file, tensor.name()));
  }
}

}  // namespace

OnnxFile::Content step_content(const OnnxFile::Content& file) {
  OnnxFile::Content content = without_graph(file);
  const onnx::GraphProto& algorithm = file.model->training_info(0).algorithm();
  content.model->add_training_info();  // the lowering of BatchNormalization asks for it
  append(file.model->graph(), *content.model->mutable_graph());
  append(algorithm, *content.model->mutable_graph());
  content.initializers = file.initializers;
  read_initializers(algorithm, file, content);
  return content;
}

OnnxFile::Content initialization_content(const OnnxFile::Content& file) {
  OnnxFile::Content content = without_graph(file);
  const onnx::GraphProto& graph = file.model->training_info(0).initialization();
  append(graph, *content.model->mutable_graph());
  read_initializers(graph, file, content);
  return content;
}

}  // namespace tandem::importer
