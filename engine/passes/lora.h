// Low-rank adapters (LoRA, Hu et al. 2021) next to the weights of products, added before the
// gradient is built and before a policy is resolved, so that they are ordinary parameters.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"
#include "engine/passes/adapters/adapter_kind.h"

namespace tandem {

struct LoraRequest {
  std::vector<AdapterRule> rules;
  std::vector<TrainRule> train;
  std::set<std::string> new_layers;  // names of parameters that train, too, as they are new
  bool training = true;              // false: no dropout
  DrawUniform draw;
};

/// y = x W becomes what the kind of the adapters says, wherever the weight is read. Adapters start
/// so that the model first computes what it did without them. All other parameters except those of
/// `train` and of new layers are frozen, and held by the model. Throws what adapted_weights throws,
/// and for rules of `train` that match nothing.
Graph add_lora(const Graph& graph, const OperatorSet& operators, const LoraRequest& request);

/// The weight with its adapters merged in, computed in double precision and returned in the
/// weight's type. `parts` are those of the kind.
HostTensor merged_weight(const AdaptedWeight& weight, const HostTensor& w,
                         const std::vector<HostTensor>& parts);

}  // namespace tandem
