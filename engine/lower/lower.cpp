// The ordered list of lowering passes.
#include <algorithm>
#include <cassert>

#include "engine/graph/error.h"
#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

// Every node must so far be on the same device as what it reads.
void check_placement(const Graph& graph, const Placement& placement,
                     const std::vector<Device*>& devices) {
  assert(placement.nodes.size() == graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const int device = placement.nodes[n].device;
    if (device == placement.nodes[0].device && device < static_cast<int>(devices.size())) continue;
    Diagnostic d;
    d.message = "a program on several devices cannot be lowered";
    d.path = graph.nodes[n].path;
    d.expected =
        placement.devices.empty() ? "one device" : placement.devices[placement.nodes[0].device];
    d.got = device < static_cast<int>(placement.devices.size()) ? placement.devices[device] : "?";
    d.fix = "place all nodes on one device";
    throw Error(ErrorKind::usage, std::move(d));
  }
}

bool is_on(const LowerOptions& options, const std::string& pass) {
  const auto& off = options.disabled_passes;
  return std::find(off.begin(), off.end(), pass) == off.end();
}

}  // namespace

const std::vector<LowerPass>& lower_passes() {
  static const std::vector<LowerPass> passes{
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
  };
  return passes;
}

Lowered lower(const Graph& graph, const Placement& placement, const OperatorSet& operators,
              const std::vector<Device*>& devices, const LowerOptions& options) {
  check_placement(graph, placement, devices);
  const LowerContext context{operators, devices, options};
  PlacedGraph placed;
  placed.graph = graph;
  for (const PlacedNode& node : placement.nodes) placed.devices.push_back(node.device);
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
  return lowered;
}

}  // namespace tandem
