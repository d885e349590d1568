// Runs the lowering passes.
#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

bool is_on(const LowerOptions& options, const std::string& pass) {
  const auto& off = options.disabled_passes;
  return std::find(off.begin(), off.end(), pass) == off.end();
}

// Per device: whether anything runs there that 16 bits are for. For graphs with unmerged nodes.
std::vector<bool> computing_devices(const PlacedGraph& placed, std::size_t devices) {
  std::vector<bool> computing(devices, false);
  for (std::size_t n = 0; n < placed.graph.nodes.size(); ++n) {
    if (placed.graph.nodes[n].op->precision == Precision::low)
      computing[placed.nodes[n].device] = true;
  }
  return computing;
}

// Notes devices that compute in float32 as they lack `compute`: nothing falls back silently.
void note_precision(Lowered& lowered, DType compute, const std::vector<bool>& computing) {
  if (compute == DType::float32) return;
  for (std::size_t d = 0; d < lowered.devices.size(); ++d) {
    const Device& device = *lowered.devices[d];
    if (!computing[d] || device.facts().has(name_of(compute))) continue;
    lowered.notes.push_back(device.name() + " computes in float32: it is not fast with " +
                            std::string(name_of(compute)));
  }
}

}  // namespace

PlacedGraph placed_graph(const Graph& graph, const Placement& placement) {
  assert(placement.nodes.size() == graph.nodes.size());
  assert(placement.states.size() == graph.states.size());
  return {graph, placement.nodes, placement.states, {}};
}

const std::vector<LowerPass>& lower_passes() {
  static const std::vector<LowerPass> passes{
#define TANDEM_LOWER_PASS(name) {#name, name},
#define TANDEM_REQUIRED_PASS(name) {#name, name, true},
#include "engine/lower/lower_passes.inl"
  };
  return passes;
}

std::vector<std::string> optional_passes() {
  std::vector<std::string> names;
  for (const LowerPass& pass : lower_passes()) {
    if (!pass.required) names.push_back(pass.name);
  }
  names.insert(names.end(), {"channels_last", "reuse_inputs"});
  return names;
}

Lowered lower(const Graph& graph, const Placement& placement, const OperatorSet& operators,
              const std::vector<Device*>& devices, const LowerOptions& options) {
  const LowerContext context{operators, devices, options};
  PlacedGraph placed = placed_graph(graph, placement);
  std::vector<double> keys;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) keys.push_back(static_cast<double>(n));
  placed = tidy(std::move(placed), keys);
  const std::vector<bool> computing = computing_devices(placed, devices.size());
  for (const LowerPass& pass : lower_passes()) {
    if (!pass.required && !is_on(options, pass.name)) continue;
    placed = pass.run(std::move(placed), context);
#ifndef NDEBUG
    verify(placed.graph);
#endif
  }
  Lowered lowered = assign_layouts(placed, context);
  lowered.notes.insert(lowered.notes.begin(), placed.notes.begin(), placed.notes.end());
  if (is_on(options, "reuse_inputs")) reuse_inputs(lowered);
  note_precision(lowered, options.compute, computing);
  return lowered;
}

}  // namespace tandem
