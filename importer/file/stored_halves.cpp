#include "importer/file/stored_halves.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "importer/file/initializers.h"

namespace tandem::importer {
namespace {

using Readers = std::unordered_map<std::string, std::vector<const onnx::NodeProto*>>;

bool is_cast_to_float(const onnx::NodeProto& node) {
  const onnx::AttributeProto* to = find_attribute(node, "to");
  return node.op_type() == "Cast" && to != nullptr && to->i() == onnx::TensorProto::FLOAT;
}

bool only_moves_elements(const onnx::NodeProto& node, const std::string& name) {
  static constexpr std::string_view names[] = {"Identity", "Reshape", "Squeeze", "Transpose",
                                               "Unsqueeze"};
  return node.input(0) == name &&
         std::find(std::begin(names), std::end(names), node.op_type()) != std::end(names);
}

bool reaches_casts_alone(const Readers& readers, const std::string& name, int depth = 8) {
  const auto at = readers.find(name);
  if (depth == 0 || at == readers.end()) return false;
  return std::all_of(at->second.begin(), at->second.end(), [&](const onnx::NodeProto* node) {
    const bool is_standard = domain_of(node->domain()).empty() && node->input_size() > 0;
    if (!is_standard || node->output_size() != 1) return false;
    if (is_cast_to_float(*node)) return node->input(0) == name;
    return only_moves_elements(*node, name) &&
           reaches_casts_alone(readers, node->output(0), depth - 1);
  });
}

}  // namespace

std::set<std::string> stored_halves(const OnnxFile::Content& file) {
  const onnx::GraphProto& graph = file.model->graph();
  std::vector<std::string> halves;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (tensor.data_type() == onnx::TensorProto::FLOAT16 ||
        tensor.data_type() == onnx::TensorProto::BFLOAT16)
      halves.push_back(tensor.name());
  }
  std::set<std::string> found;
  if (halves.empty()) return found;
  Readers readers;
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : reads_of(node)) readers[name].push_back(&node);
  }
  static const onnx::NodeProto output;  // an output of the graph is no cast
  for (const onnx::ValueInfoProto& info : graph.output()) readers[info.name()].push_back(&output);
  for (const std::string& name : halves) {
    if (reaches_casts_alone(readers, name)) found.insert(name);
  }
  return found;
}

}  // namespace tandem::importer
