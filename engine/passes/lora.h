// Low-rank adapters (LoRA, Hu et al. 2021) next to the weights of products, added before the
// gradient is built and before a policy is resolved, so that they are ordinary parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/graph/parameter_names.h"
#include "engine/operators/operator.h"

namespace tandem {

/// Which weights get adapters, and with which settings.
struct AdapterRule {
  std::string at;         // a selector of parameters; the last rule that covers one counts
  std::int64_t rank = 8;  // r
  double alpha = 8;       // the adapters' part is multiplied by alpha / r
  double dropout = 0;     // probability, for what the adapters read; only in training
  bool rslora = false;    // by alpha / sqrt(r) instead (rank-stabilised, Kalajdzievski 2023)
  Diagnostic where;       // file, line and column of messages

  /// What the adapters' part is multiplied by.
  double scale() const;
};
/// Parameters that train as well as the adapters.
struct TrainedRule {
  std::string at;
  Diagnostic where;
};

/// A weight with adapters. Both have its orientation, and their product its shape:
///   [in, out], as MatMul reads it:   a [in, r], b [r, out],          a b
///   [out, in], as Gemm with transB:  a [r, in], b [out, r],          b a
///   [out, in, k...], as Conv:        a [r, in, k...], b [out, r, 1...], b a
struct AdaptedWeight {
  std::string name;  // the state's
  std::string path;
  TensorType type;
  bool out_first = false;
  AdapterRule rule;
  std::vector<ParameterReader> readers;  // operators that give the weight further names

  std::string a() const { return name + "/lora_a"; }
  std::string b() const { return name + "/lora_b"; }
  TensorType a_type() const;
  TensorType b_type() const;
  /// How many terms an output element sums: `in`, times the positions of a kernel.
  std::int64_t fan_in() const;
};

/// In the graph's order. Throws Error{usage}, all problems at once: rules that cover no parameter
/// (with the nearest name) or none that a product reads as its weight, ranks above that of the
/// weight as a matrix.
std::vector<AdaptedWeight> adapted_weights(const Graph& graph,
                                           const std::vector<AdapterRule>& rules);

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

/// y = x W becomes y + scale (dropout(x) A) B wherever the weight is read. A starts as PEFT's
/// does (kaiming_uniform with a = sqrt(5), which is uniform within 1 / sqrt(fan_in)), B at zero, so
/// that the model first computes what it did without adapters. All other parameters except those of
/// `train` and of new layers are frozen, and held by the model. Throws what adapted_weights throws,
/// and for rules of `train` that match nothing.
Graph add_lora(const Graph& graph, const OperatorSet& operators, const LoraRequest& request);

/// The weight with its adapters merged in: W + scale times their product, computed in double
/// precision and returned in the weight's type.
HostTensor merged_weight(const AdaptedWeight& weight, const HostTensor& w, const HostTensor& a,
                         const HostTensor& b);

}  // namespace tandem
