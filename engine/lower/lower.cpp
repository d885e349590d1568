// The ordered list of lowering passes.
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

// Nothing falls back silently.
void note_precision(Lowered& lowered, DType compute) {
  if (compute == DType::float32) return;
  for (std::size_t d = 0; d < lowered.devices.size(); ++d) {
    const Device& device = *lowered.devices[d];
    const bool used =
        std::any_of(lowered.nodes.begin(), lowered.nodes.end(), [&](const auto& node) {
          return node.device == static_cast<int>(d) && node.kernel != nullptr;
        });
    if (!used || device.facts().has(name_of(compute))) continue;
    lowered.notes.push_back(device.name() + " computes in float32: it is not fast with " +
                            std::string(name_of(compute)));
  }
}

}  // namespace

PlacedGraph placed_graph(const Graph& graph, const Placement& placement) {
  assert(placement.nodes.size() == graph.nodes.size());
  assert(placement.states.size() == graph.states.size());
  PlacedGraph placed;
  placed.graph = graph;
  for (const PlacedNode& node : placement.nodes) {
    placed.devices.push_back(node.device);
    placed.keeping.push_back({node.acts, node.lookahead});
  }
  for (const PlacedState& state : placement.states) {
    placed.states.push_back(state.state);
    placed.weights.push_back(state.param);
    placed.lookaheads.push_back(state.lookahead);
  }
  return placed;
}

const std::vector<LowerPass>& lower_passes() {
  static const std::vector<LowerPass> passes{
      {"recompute", recompute},
      {"precision", precision, true},
      {"place_parameters", place_parameters, true},
      {"add_transfers", add_transfers, true},
      {"offload_activations", offload_activations},
      {"split_views", split_views},
      {"constant_gathers", constant_gathers},
      {"transposed_products", transposed_products},
      {"slice_gradients", slice_gradients},
      {"product_epilogues", product_epilogues},
      {"convolution_epilogues", convolution_epilogues},
      {"product_updates", product_updates},
      {"fuse", fuse},
      {"group_updates", group_updates},
      {"output_copies", output_copies, true},
      {"early_updates", early_updates},
      {"order_copies", order_copies},
  };
  return passes;
}

Lowered lower(const Graph& graph, const Placement& placement, const OperatorSet& operators,
              const std::vector<Device*>& devices, const LowerOptions& options) {
  const LowerContext context{operators, devices, options};
  PlacedGraph placed = placed_graph(graph, placement);
  std::vector<double> keys;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) keys.push_back(static_cast<double>(n));
  placed = tidy(std::move(placed), keys);
  for (const LowerPass& pass : lower_passes()) {
    if (!pass.required && !is_on(options, pass.name)) continue;
    placed = pass.run(std::move(placed), context);
#ifndef NDEBUG
    verify(placed.graph);
#endif
  }
  Lowered lowered = assign_layouts(placed, context);
  if (is_on(options, "reuse_inputs")) reuse_inputs(lowered);
  note_precision(lowered, options.compute);
  return lowered;
}

}  // namespace tandem
