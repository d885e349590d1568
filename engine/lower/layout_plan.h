// The layout that the whole graph prefers for each value, decided before kernels are chosen.
#pragma once

#include <optional>
#include <vector>

#include "engine/lower/placed_graph.h"

namespace tandem {

/// The layout that a value's producer should write; `storage`: inside the buffer of that value
/// (a Concat's result), or -1 for a buffer of its own.
struct Want {
  Layout layout;
  ValueId storage;
};

struct LayoutPlan {
  std::vector<char> channels_last;         // per value: member of a group that takes channels-last
  std::vector<std::optional<Want>> wants;  // per value
  std::vector<Layout> states;              // per state of the graph
  std::vector<int> state_of;               // per value: the state it is the initial value of, or -1
};

/// Each connected group of convolutions, pools, normalisations and element-wise nodes takes one
/// layout as a whole: the one its convolutions' kernels propose first, weighted by their flops.
std::vector<char> channels_last_groups(const PlacedGraph& placed, const LowerContext& context);

/// A parameter has the layout that its costliest consumer prefers; its moments have it, too.
std::vector<Layout> state_layouts(const PlacedGraph& placed, const LowerContext& context,
                                  const std::vector<char>& channels_last);

LayoutPlan plan_layouts(const PlacedGraph& placed, const LowerContext& context);

/// The layout of input `input` of a Concat inside its result's layout.
Layout concat_slice(const Graph& graph, const Node& concat, std::size_t input, const Layout& y);

}  // namespace tandem
