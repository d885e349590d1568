// The names by which selectors may refer to a graph's parameters: their own and those of their
// readers.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/selector.h"

namespace tandem {

/// A forward operator that reads a parameter, as it is or moved (Transpose, Reshape, Cast).
struct ParameterReader {
  std::string module;  // "layers.0.q_proj"; the operator's path where that has no outer part
  std::string op;      // the operator's path: "layers.0.q_proj.MatMul"
  std::string role;    // "weight", "bias", "running_mean"; "": that input has no name

  bool operator==(const ParameterReader&) const = default;
};

/// A parameter is also called "MODULE:ROLE" and "OP:ROLE" by each operator that reads it:
/// onnx::MatMul_12 is "q_proj:weight" and "q_proj.MatMul:weight".
/// A parameter with a scope of its own ("embed:weight") gets such names only from other modules,
/// with its own role: "lm_head:weight" for a tied weight. A name that another parameter already has
/// is not given again.
class ParameterNames {
 public:
  ParameterNames() = default;  // only own names
  explicit ParameterNames(const Graph& graph);

  /// Whether the selector matches the parameter's own names (Selector::covers_parameter) or any
  /// reader's. A selector without a `:` also matches parameters without a scope of their own by
  /// module or operator ("q_proj"). A table's cache counts as the table.
  bool covers(const Selector& selector, const State& state) const;
  /// The reader by which the selector means the state ("q_proj:weight"); "" where its own names
  /// match, or nothing does.
  std::string matched_reader(const Selector& selector, const State& state) const;

  /// All readers of a parameter, and those that give it further names.
  const std::vector<ParameterReader>& readers(const State& state) const;
  const std::vector<ParameterReader>& further(const State& state) const;
  /// "q_proj:weight", in the order of the readers, each once.
  std::vector<std::string> further_names(const State& state) const;

  /// Advice where a selector matches no parameter: the nearest name, or that a weight which several
  /// modules share is named with its role.
  std::string no_match_fix(const std::string& selector, const Graph& graph) const;

 private:
  using Readers = std::unordered_map<std::string, std::vector<ParameterReader>>;  // by state
  Readers readers_, further_;
};

/// "q_proj" of the path "q_proj.MatMul"; the path itself where it has no outer part.
std::string module_of_path(const std::string& path);

}  // namespace tandem
