// Learning rates that fall from the head of a network to its input, for fine-tuning.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem {

/// Layers by the graph's depth: 0 before the first block, then one more for each block that follows
/// another, the last one after all blocks. A block is the beginning of a parameter's path up to the
/// first number ("encoder.layers.3"); a parameter without one has the layer of the values that it
/// is applied to. `of_state` follows the graph's states: -1 where nothing that depends on data
/// reads one.
struct LayerNumbers {
  std::vector<int> of_state;
  int head = 0;    // the greatest number
  int blocks = 0;  // that there are
};
LayerNumbers number_layers(const Graph& graph);

/// Multiplies rates by decay^(head - layer), as BEiT (Bao et al. 2021) and MAE (He et al. 2022)
/// have it, and says which in a note. Error{usage} where no parameter is in a block.
void decay_by_layers(const Graph& graph, const OptimizerConfig& config, std::vector<Chosen>& chosen,
                     std::vector<std::string>& notes);

}  // namespace tandem
