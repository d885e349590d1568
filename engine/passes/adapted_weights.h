// Which weights get adapters of low rank: those that products read and that the rules cover.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/graph/parameter_names.h"
#include "engine/passes/fine_tuning_rules.h"

namespace tandem {

/// In place of a selector: the weights of all MatMuls and Gemms before the output layer, as PEFT's
/// target_modules = "all-linear".
constexpr std::string_view all_linear = "all-linear";

/// A weight with adapters, whose kind says which states train for it.
struct AdaptedWeight {
  std::string name;  // the state's
  std::string path;
  TensorType type;
  bool out_first = false;
  AdapterRule rule;
  std::vector<ParameterReader> readers;  // operators that give the weight further names
  bool is_packed = false;  // `type` is what it is unpacked to; adapters cannot be merged into it

  std::string state_of(std::string_view part) const { return name + "/" + std::string(part); }
  std::string a() const { return state_of("lora_a"); }
  std::string b() const { return state_of("lora_b"); }
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
  ValueId matrix;       // the parameter, or what a packed one is unpacked to
};
/// All that read the parameter, perhaps through a Transpose.
std::vector<WeightReader> readers_of_weight(const Graph& graph,
                                            const std::vector<std::vector<NodeId>>& readers,
                                            const State& state);

/// A rule that covers no parameter, with the nearest name. `key` begins the message.
Diagnostic no_match(const Where& where, const std::string& key, const std::string& selector,
                    const Graph& graph);

}  // namespace tandem
