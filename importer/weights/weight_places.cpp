#include "importer/weights/weight_places.h"

#include "importer/file/moves.h"
#include "importer/operators/all.h"

namespace tandem::importer {

WeightPlaces::WeightPlaces(const onnx::GraphProto& graph, const std::vector<bool>& needed,
                           const ModulePaths& modules) {
  for (int n = graph.node_size(); n-- > 0;) {
    if (needed[static_cast<std::size_t>(n)]) add(graph.node(n), modules);
  }
}

std::string WeightPlaces::find(const std::string& value, std::size_t rank) const {
  const auto at = places_.find(value);
  return at != places_.end() && rank >= at->second.least_rank ? at->second.path : "";
}

void WeightPlaces::add(const onnx::NodeProto& node, const ModulePaths& modules) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const auto& inner = attribute.g().node();
    for (int n = inner.size(); n-- > 0;) add(inner[n], modules);
  }
  if (is_move(node) && node.input_size() > 0 && node.output_size() > 0) {
    const auto moved = places_.find(node.output(0));
    if (moved != places_.end()) places_.emplace(node.input(0), Place(moved->second));
    return;
  }
  const std::string op = lowering_name(node);
  for (int i = 0; i < node.input_size(); ++i) {
    std::size_t rank = 0;
    while (rank <= 2 && !is_weight(op, static_cast<std::size_t>(i), rank)) ++rank;
    if (rank > 2 || node.input(i).empty()) continue;
    std::string path = modules.operator_path(node);
    if (path.empty()) path = node.op_type();
    places_.emplace(node.input(i), Place{std::move(path), rank});
  }
}

}  // namespace tandem::importer
