#include "importer/tied_names.h"

#include <set>
#include <sstream>

#include "importer/paths.h"

namespace tandem::importer {
namespace {

// Type and place in an external file; "" for a tensor whose bytes are in the model itself.
std::string place_of(const onnx::TensorProto& tensor) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return "";
  std::string location, offset = "0", shape;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = entry.value();
  }
  for (const std::int64_t extent : tensor.dims()) {
    if (extent == 0) return "";  // no bytes to share
    shape += std::to_string(extent) + ",";
  }
  return std::to_string(tensor.data_type()) + " " + shape + " " + offset + " " + location;
}

std::vector<std::string> output_names(const onnx::GraphProto& graph) {
  std::vector<std::string> names;
  for (const onnx::ValueInfoProto& output : graph.output()) names.push_back(output.name());
  return names;
}

// "fc1.weight": {"fc1", "weight"}.
std::pair<std::string, std::string> scope_and_role(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

}  // namespace

std::vector<std::string> listed_targets(const onnx::ModelProto& model, const std::string& kind) {
  std::vector<std::string> targets;
  const auto read = [&](const auto& entries) {
    for (const onnx::StringStringEntryProto& entry : entries) {
      if (entry.key() != "pkg.torch.export.ExportedProgram.graph_signature") continue;
      std::istringstream lines(entry.value());
      for (std::string line; std::getline(lines, line);) {
        const std::string mark = kind + " target='";
        const std::size_t begin = line.find(mark);
        if (begin == std::string::npos) continue;
        const std::string rest = line.substr(begin + mark.size());
        targets.push_back(rest.substr(0, rest.find('\'')));
      }
    }
  };
  read(model.metadata_props());
  read(model.graph().metadata_props());
  return targets;
}

std::unordered_map<std::string, std::string> shared_initializers(
    const OnnxFile::Content& file, const std::unordered_map<std::string, Role>& roles) {
  std::unordered_map<std::string, std::string> shared, first;
  for (const onnx::TensorProto& tensor : file.model->graph().initializer()) {
    const auto role = roles.find(tensor.name());
    if (role == roles.end() || !role->second.is_state) continue;
    const std::string place = place_of(tensor);
    if (place.empty()) continue;
    const auto [at, is_new] = first.emplace(place, tensor.name());
    if (!is_new && roles.at(at->second).kind == role->second.kind)
      shared[tensor.name()] = at->second;
  }
  return shared;
}

std::unordered_map<std::string, std::string> shared_initializers(const OnnxFile::Content& file) {
  const onnx::GraphProto& graph = file.model->graph();
  return shared_initializers(file,
                             initializer_roles(file, needed_nodes(graph, output_names(graph))));
}

std::map<std::string, std::string> tied_names(
    const OnnxFile::Content& file, const std::vector<bool>& needed,
    const std::unordered_map<std::string, std::string>& shared, const Graph& graph) {
  const onnx::GraphProto& from = file.model->graph();
  std::map<std::string, std::string> names;
  const auto state_of = [&](const std::string& name) -> std::string {
    const auto tied = names.find(name);
    const std::string& state = tied == names.end() ? name : tied->second;
    return graph.find_state(state) != nullptr ? state : "";
  };
  for (const auto& [other, name] : shared) {
    if (!state_of(name).empty()) names[other] = name;
  }
  const std::vector<std::string> outputs = output_names(from);
  const std::set<std::string> results(outputs.begin(), outputs.end());
  for (const onnx::NodeProto& node : from.node()) {
    if (node.op_type() != "Identity" || !domain_of(node.domain()).empty() ||
        node.input_size() != 1 || node.output_size() != 1)
      continue;
    const std::string state = state_of(node.input(0)), &other = node.output(0);
    if (!state.empty() && !is_generated_name(other) && results.count(other) == 0)
      names[other] = state;
  }
  // A module that reads the initializer of another one, in the role of its own that is missing.
  const ModulePaths modules(*file.model);
  for (const std::string& target : listed_targets(*file.model, "PARAMETER")) {
    if (file.initializers.count(target) > 0 || names.count(target) > 0) continue;
    const auto [scope, role] = scope_and_role(target);
    std::set<std::string> candidates;
    for (int n = 0; n < from.node_size(); ++n) {
      if (!needed[static_cast<std::size_t>(n)]) continue;
      const onnx::NodeProto& node = from.node(n);
      if (modules.module_scope(node) != scope) continue;
      for (const std::string& input : node.input()) {
        const auto [its_scope, its_role] = scope_and_role(input);
        if (its_scope == scope || its_role != role) continue;
        const std::string state = state_of(input);
        if (!state.empty()) candidates.insert(state);
      }
    }
    if (candidates.size() == 1) names[target] = *candidates.begin();
  }
  return names;
}

}  // namespace tandem::importer
