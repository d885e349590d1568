#include "importer/export/graph_edits.h"

#include <utility>

#include "importer/file/erase_items.h"
#include "importer/file/initializers.h"
#include "importer/file/tensor_data.h"

namespace tandem::importer {
namespace {

void take_names(const onnx::GraphProto& graph, std::unordered_set<std::string>& taken) {
  for (const auto& input : graph.input()) taken.insert(input.name());
  for (const auto& tensor : graph.initializer()) taken.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) taken.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    taken.insert(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) take_names(attribute.g(), taken);
      for (const auto& inner : attribute.graphs()) take_names(inner, taken);
    }
  }
}

}  // namespace

ReaderCounts reader_counts(const onnx::GraphProto& graph) {
  ReaderCounts counts;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : reads_of(node)) ++counts[name];
  }
  for (const auto& output : graph.output()) ++counts[output.name()];
  return counts;
}

FreeNames::FreeNames(const onnx::GraphProto& graph) { take_names(graph, taken_); }

std::string FreeNames::make(std::string wanted) {
  while (!taken_.insert(wanted).second) wanted += "_";
  return wanted;
}

onnx::TensorProto* find_initializer(onnx::GraphProto& graph, const std::string& name) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

void replace_initializer(onnx::TensorProto& tensor, const HostTensor& values) {
  onnx::TensorProto changed;
  changed.set_name(tensor.name());
  changed.set_doc_string(tensor.doc_string());
  changed.set_data_type(dtype_to_onnx(values.dtype()));
  for (const std::int64_t extent : values.shape()) changed.add_dims(extent);
  write_tensor(changed, values);
  tensor = std::move(changed);
}

onnx::TensorProto& add_initializer(onnx::ModelProto& model, const std::string& name,
                                   const HostTensor& values) {
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  replace_initializer(tensor, values);
  if (model.ir_version() >= 4) return tensor;
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name(name);
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(tensor.data_type());
  type.mutable_shape();
  for (const std::int64_t extent : values.shape())
    type.mutable_shape()->add_dim()->set_dim_value(extent);
  return tensor;
}

void drop_unread_initializers(onnx::GraphProto& graph,
                              const std::unordered_set<std::string>& names) {
  const ReaderCounts readers = reader_counts(graph);
  const auto is_unread = [&](const auto& item) {
    return names.count(item.name()) > 0 && readers.count(item.name()) == 0;
  };
  erase_items(*graph.mutable_initializer(), is_unread);
  erase_items(*graph.mutable_input(), is_unread);
  erase_items(*graph.mutable_value_info(), is_unread);
}

void forget_value_types(onnx::GraphProto& graph) { graph.clear_value_info(); }

}  // namespace tandem::importer
