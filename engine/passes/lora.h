// Low-rank adapters (LoRA, Hu et al. 2021) next to the weights of products, added before the
// gradient is built and before a policy is resolved, so that they are ordinary parameters.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/operators/operator.h"
#include "engine/passes/adapted_weights.h"

namespace tandem {

/// Parameters that train as well as the adapters.
struct TrainedRule {
  std::string at;
  Diagnostic where;
};

/// Draws a start value, uniform in [-bound, bound), that is determined by the name.
using DrawUniform =
    std::function<HostTensor(const std::string& name, const TensorType& type, double bound)>;

struct LoraRequest {
  std::vector<AdapterRule> rules;
  std::vector<TrainedRule> train;
  std::set<std::string> new_layers;  // names of parameters that train, too, as they are new
  bool training = true;              // false: no dropout
  DrawUniform draw;
};

/// y = x W becomes y + scale (dropout(x) A) B wherever the weight is read; with dora also as
/// engine/passes/dora.h says. A starts as PEFT's does (kaiming_uniform with a = sqrt(5), which is
/// uniform within 1 / sqrt(fan_in)), B at zero, so that the model first computes what it did
/// without adapters. All other parameters except those of `train` and of new layers are frozen, and
/// held by the model. Throws what adapted_weights throws, and for rules of `train` that match
/// nothing.
Graph add_lora(const Graph& graph, const OperatorSet& operators, const LoraRequest& request);

/// The weight with its adapters merged in: W + scale times their product, with dora scaled to the
/// magnitudes; computed in double precision and returned in the weight's type.
HostTensor merged_weight(const AdaptedWeight& weight, const HostTensor& w, const HostTensor& a,
                         const HostTensor& b, const HostTensor& magnitude = {});

}  // namespace tandem
