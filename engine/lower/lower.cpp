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

// By device: whether anything runs there that 16 bits are for. Of graphs before passes merge nodes.
std::vector<bool> computing_devices(const PlacedGraph& placed, std::size_t devices) {
  std::vector<bool> computing(devices, false);
  for (std::size_t n = 0; n < placed.graph.nodes.size(); ++n) {
    if (placed.graph.nodes[n].op->precision == Precision::low)
      computing[placed.nodes[n].device] = true;
  }
  return computing;
}

// Nothing falls back silently.
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
      // First: clones get casts, copies and layouts like the nodes that they are made from.
      {"recompute", recompute},
      // After the clones of lookups are there; before everything that moves rows or casts.
      {"split_tables", split_tables, true},
      // Before everything that looks at where values are made.
      {"place_collectives", place_collectives, true},
      // Before casts, which would stand between lookups and their readers.
      {"ship_rows", ship_rows},
      // After the clones are there; before copies, so that a cast stands where the link carries 16
      // bits.
      {"precision", precision, true},
      // After precision has given weights their types: what moves is the weight, not the master.
      {"place_parameters", place_parameters, true},
      // After everything that decides where a value is made or read; from here on nothing crosses
      // but Transfers, so that the passes below merge nodes of one device only.
      {"add_transfers", add_transfers, true},
      // After the cut: a copy to the host that is there already serves, too.
      {"offload_activations", offload_activations},
      // After all that decides what backward reads: a gradient whose logits are made again or come
      // back from the host stays apart, so that neither room nor bits change.
      {"losses_with_gradients", losses_with_gradients},
      // Before all that looks for Slices.
      {"split_views", split_views},
      // After Split is Slice; before slice_gradients, for which it makes SliceGrads.
      {"constant_gathers", constant_gathers},
      // Before epilogues and updates: they look at the product next to them, not at a Transpose.
      {"transposed_products", transposed_products},
      // After every SliceGrad is there; before fuse, which would take their sums.
      {"slice_gradients", slice_gradients},
      // Before product_updates, which takes products without an epilogue; before fuse, which takes
      // what no product wants.
      {"product_epilogues", product_epilogues},
      // As above.
      {"convolution_epilogues", convolution_epilogues},
      // After the epilogues; before group_updates, which takes the updates that are left.
      {"product_updates", product_updates},
      // Before fuse, which would take the casts.
      {"widen_lookups", widen_lookups},
      // After all that makes gradients of lookups something else.
      {"grouped_sums", grouped_sums},
      // Before fuse, which would take the sums.
      {"cached_sums", cached_sums},
      // After all that gives an element-wise node a better place.
      {"fuse", fuse},
      // After fuse, when it is known which nodes gradients come from.
      {"group_updates", group_updates},
      // After group_updates, when the parameters' readers are what they will be: it asks for their
      // layouts.
      {"gather_in_place", gather_in_place},
      // As above; after everything that merges updates.
      {"bucket_collectives", bucket_collectives},
      // After merging, which changes what outputs lie in.
      {"output_copies", output_copies, true},
      // After the last pass that adds nodes: it orders the ones there are.
      {"early_updates", early_updates},
      // Last: it counts uses in the order that will run.
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
