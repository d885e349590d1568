// The model ends in other values: what they do not need goes, weights included.
#include <algorithm>
#include <exception>
#include <unordered_set>

#include "engine/graph/text.h"
#include "importer/export/transformation.h"
#include "importer/file/model_edits.h"
#include "onnx/shape_inference/implementation.h"

namespace tandem::importer::transformations {
namespace {

/// What ONNX's shape inference says about values inside of the graph; nothing where it fails.
std::vector<onnx::ValueInfoProto> inferred_values(const onnx::ModelProto& model) {
  onnx::ModelProto copy = model;
  try {
    onnx::shape_inference::InferShapes(copy);
  } catch (const std::exception&) {
    return {};
  }
  std::vector<onnx::ValueInfoProto> all(copy.graph().value_info().begin(),
                                        copy.graph().value_info().end());
  all.insert(all.end(), copy.graph().output().begin(), copy.graph().output().end());
  return all;
}

void keep_only(ExportedModel& model, const ExportOptions& options) {
  onnx::GraphProto& graph = *model.proto.mutable_graph();
  std::unordered_set<std::string> made, known, wanted;
  for (const auto& node : graph.node()) made.insert(node.output().begin(), node.output().end());
  const auto has_type = [](const onnx::ValueInfoProto& info) {
    return info.type().tensor_type().has_shape();
  };
  for (const auto& info : graph.value_info()) {
    if (has_type(info)) known.insert(info.name());
  }
  for (const auto& info : graph.output()) {
    if (has_type(info)) known.insert(info.name());
  }
  std::vector<std::string> own;
  for (const auto& output : graph.output()) own.push_back(output.name());
  bool infers = false;
  std::vector<std::pair<std::string, TensorType>> outputs;
  for (const std::string& name : options.keep) {
    if (made.count(name) == 0)
      refuse(model.content.path, name, "the model makes no value of this name",
             "its outputs are " + joined(own) + ", or values inside of its graph", "",
             "`tandem inspect MODEL --stage graph` lists them");
    if (!wanted.insert(name).second) refuse(model.content.path, name, "this output is named twice");
    infers = infers || known.count(name) == 0;
    outputs.emplace_back(name, TensorType{});
  }
  if (infers) {
    for (const onnx::ValueInfoProto& info : inferred_values(model.proto)) {
      if (wanted.count(info.name()) == 0 || !has_type(info)) continue;
      if (!known.insert(info.name()).second) continue;
      *graph.add_value_info() = info;
    }
  }
  for (const std::string& name : options.keep) {
    if (known.count(name) > 0) continue;
    refuse(model.content.path, name, "the type of this value is not known",
           "a value whose type ONNX can infer", "",
           "name an output of the model, or add its type to graph.value_info");
  }
  cut_to_outputs(model.proto, outputs, "");
}

}  // namespace

extern const Transformation keep_outputs;
const Transformation keep_outputs{
    "outputs", [](const ExportOptions& options) { return !options.keep.empty(); }, keep_only};

}  // namespace tandem::importer::transformations
