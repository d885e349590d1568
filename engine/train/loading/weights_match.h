// Which tensor of a file of weights each parameter gets, and what does not fit.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/config/parameters_config.h"
#include "engine/formats/weights/weights_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/parameter_names.h"
#include "engine/passes/adapted_weights.h"

namespace tandem {

/// What loading has to know of the model besides its graph, and of files besides those that the
/// engine reads.
struct LoadingParts {
  ParameterNames names;  // by what reads them in the model
  WeightsOpener open;
  std::map<std::string, std::string> aliases;  // tied weights: {"head.weight", "token.weight"}
  std::set<std::string> other_names;           // other names of the model's weights, needed or not
  std::set<std::string> added;  // states that start anew where a file lacks them or has another
                                // shape: adapters, a new last layer
  std::vector<AdaptedWeight> adapted;  // whose parts may start with values of the weight
};

/// A tensor or a parameter that found no partner, or one of another shape.
struct WeightsDifference {
  enum class Kind : std::uint8_t { missing, other_shape, unexpected, same_name };
  Kind kind = Kind::missing;
  std::string in_file;  // its name there; "" of a missing one
  std::optional<Shape> file_shape;
  std::string parameter;  // "" of an unexpected one
  std::optional<Shape> shape;
  std::string hint;
};

struct WeightsMatch {
  struct Pair {
    std::string in_file;
    const State* state = nullptr;
    bool transposed = false;
  };
  std::vector<Pair> pairs;                     // in the graph's order
  std::vector<WeightsDifference> differences;  // that the rule does not allow
  /// Advice that covers most of them; "" where there is none.
  std::string fix;
  int covered = 0;  // states that the rule's selector covers
  std::vector<std::string> notes;
};

/// The graph has to outlive the result.
WeightsMatch match_weights(const WeightsFile& file, const LoadRule& rule, const Graph& graph,
                           const LoadingParts& parts);

/// A line for each of the first 20, under a head: "name in file | shape | parameter | shape |
/// what"; then how many more there are.
std::string difference_table(const std::vector<WeightsDifference>& differences);

/// Copies and caches of other parameters show what these hold.
bool holds_own_values(const State& state);

}  // namespace tandem
