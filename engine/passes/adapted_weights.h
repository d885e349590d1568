// Which weights get adapters of low rank: those that products read and that the rules cover.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/graph/parameter_names.h"

namespace tandem {

/// In place of a selector: the weights of all MatMuls and Gemms before the output layer, as PEFT's
/// target_modules = "all-linear".
constexpr std::string_view all_linear = "all-linear";

/// Which weights get adapters, and with which settings.
struct AdapterRule {
  std::string at;         // a selector of parameters, or all_linear; the last rule counts
  std::int64_t rank = 8;  // r
  double alpha = 8;       // the adapters' part is multiplied by alpha / r
  double dropout = 0;     // probability, for what the adapters read; only in training
  bool rslora = false;    // by alpha / sqrt(r) instead (rank-stabilised, Kalajdzievski 2023)
  bool dora = false;      // a magnitude for each output, too (engine/passes/dora.h)
  Diagnostic where;       // file, line and column of messages

  /// What the adapters' part is multiplied by.
  double scale() const;
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
  std::string magnitude() const { return name + "/lora_magnitude"; }  // with dora; [out]
  TensorType a_type() const;
  TensorType b_type() const;
  std::size_t out_axis() const { return out_first ? 0 : 1; }
  std::int64_t outputs() const { return type.shape[out_axis()]; }
  /// Names of the states that train for this weight.
  std::vector<std::string> parts() const;
  /// How many terms an output element sums: `in`, times the positions of a kernel.
  std::int64_t fan_in() const;
};

/// In the graph's order. Throws Error{usage}, all problems at once: rules that cover no parameter
/// (with the nearest name) or none that a product reads as its weight, ranks above that of the
/// weight as a matrix.
std::vector<AdaptedWeight> adapted_weights(const Graph& graph,
                                           const std::vector<AdapterRule>& rules);

/// A node that multiplies by the weight, or what keeps the weight from having adapters.
struct WeightReader {
  NodeId node;
  bool out_first = false;
  std::string refusal;  // "" where it is a product
};
/// All that read the parameter, perhaps through a Transpose.
std::vector<WeightReader> readers_of_weight(const Graph& graph,
                                            const std::vector<std::vector<NodeId>>& readers,
                                            const State& state);

/// A rule that covers no parameter, with the nearest name. `key` begins the message.
Diagnostic no_match(const Diagnostic& where, const std::string& key, const std::string& at,
                    const Graph& graph);

}  // namespace tandem
