#include "placement/kernel_refusals.h"

#include <algorithm>

#include "engine/lower/kernel_choice.h"
#include "engine/operators/operator.h"
#include "engine/optimizers/composed.h"

namespace tandem {
namespace {

using Refusals = std::map<std::pair<int, std::string>, std::string>;

void ask(const Graph& graph, NodeId id, const Device& device, int index, Refusals& refusals) {
  std::vector<std::string> reasons;
  if (choose_kernel(device.kernels(), plain_request(graph, id, device, true), &reasons)) return;
  const Node& node = graph.node(id);
  std::string because = node.op->name + ": ";
  for (std::size_t i = 0; i < reasons.size(); ++i) because += (i > 0 ? "; " : "") + reasons[i];
  if (reasons.empty()) because += "no kernel is listed";
  const auto add = [&](const std::string& path) { refusals.try_emplace({index, path}, because); };
  if (node.phase != Phase::update) {
    add(node.path);
    for (const std::string& origin : node.origins) add(origin);
    return;
  }
  for (const State& state : graph.states) {
    const bool written =
        !(state.final == state.initial) &&
        std::find(node.outputs.begin(), node.outputs.end(), state.final) != node.outputs.end();
    const bool steps = written || node.path == composed_path(state.name);
    if (steps && state.kind == StateKind::parameter) add("optimizer." + state.name);
  }
}

}  // namespace

Refusals kernel_refusals(const Graph& graph, const std::vector<Device*>& devices) {
  Refusals refusals;
  for (std::size_t d = 1; d < devices.size(); ++d) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Operator& op = *graph.nodes[n].op;
      if (op.view || op.role == Role::collective) continue;  // layouts or communicators, no kernels
      ask(graph, NodeId{static_cast<std::int32_t>(n)}, *devices[d], static_cast<int>(d), refusals);
    }
  }
  return refusals;
}

}  // namespace tandem
