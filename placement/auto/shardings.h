// What ranks may share out besides the batch: the ways that `policy auto --ranks` compares.
#pragma once

#include <string>
#include <vector>

#include "placement/resolve.h"

namespace tandem {

struct ShardWay {
  std::string name;                // "data parallel, tables by rows"
  std::vector<std::string> rules;  // behind those of a placement
  std::string why = "";            // what it may gain; of splits
};

/// Data parallel alone comes first. Parameters of which a rule says `shard` already stay as they
/// are. What a number of ranks, an optimizer or a reader refuses may be among them. `graph`: as it
/// was imported.
std::vector<ShardWay> shard_ways(const ResolvedPolicy& resolved, const Graph& graph);

}  // namespace tandem
