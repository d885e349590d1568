// What ranks may shard besides the batch: the ways that `policy auto --ranks` compares.
#pragma once

#include <string>
#include <vector>

#include "placement/resolve.h"

namespace tandem {

struct ShardWay {
  std::string name;      // "data parallel, tables by rows"
  PolicyRules rules;     // to be written after those of a placement
  std::string why = "";  // for splits: what they may gain
};

/// Plain data parallel comes first. Parameters with a rule that sets `shard` stay as they are. Some
/// ways may be refused for the number of ranks, an optimizer or a reader. `graph`: as it was
/// imported.
std::vector<ShardWay> shard_ways(const ResolvedPolicy& resolved, const Graph& graph);

}  // namespace tandem
