#include "importer/weights/merged_names.h"

#include <string>
#include <string_view>
#include <unordered_set>

#include "importer/branches.h"

namespace tandem::importer {
namespace {

constexpr std::string_view mark = "_merged_";

/// "fc.weight" of "fc.weight_merged_0"; "" where the name has no such end.
std::string name_before(const std::string& name) {
  const std::size_t at = name.rfind(mark);
  if (at == std::string::npos || at == 0) return "";
  const std::string_view number = std::string_view(name).substr(at + mark.size());
  const bool is_number =
      !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? name.substr(0, at) : "";
}

void add_names(const onnx::GraphProto& graph, std::unordered_set<std::string>& names) {
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    names.insert(node.output().begin(), node.output().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) add_names(attribute.g(), names);
      for (const onnx::GraphProto& inner : attribute.graphs()) add_names(inner, names);
    }
  }
}

}  // namespace

void restore_merged_names(onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  std::unordered_set<std::string> taken, ports;  // ports keep their names
  for (const auto& input : graph.input()) ports.insert(input.name());
  for (const auto& output : graph.output()) ports.insert(output.name());
  Renames renames;
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    const std::string before = name_before(tensor.name());
    if (before.empty() || ports.count(tensor.name()) > 0) continue;
    if (taken.empty()) add_names(graph, taken);
    if (!taken.insert(before).second) continue;
    renames.emplace(tensor.name(), before);
    tensor.set_name(before);
  }
  if (!renames.empty()) rename_reads(graph, renames);
}

}  // namespace tandem::importer
