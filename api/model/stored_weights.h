// How an imported model keeps matrices that do not train: packed as parameters.storage says, or in
// the 16 bits of the file.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/parameter_names.h"
#include "engine/passes/packed_states.h"

namespace tandem::api {

class StoredWeights {
 public:
  StoredWeights(const OperatorSet& operators, const RunConfig& config)
      : operators_(operators), config_(config) {}

  /// Packs what rules cover, and makes float32 of what was imported in 16 bits and trains, starts
  /// with other values than the file's, or has adapters that need its values. `new_layers` train
  /// next to adapters. Throws Error{usage} for rules that cover what trains; Error{data} as pack
  /// does.
  void apply(Graph& graph, const std::set<std::string>& new_layers);

  /// By the name of the parameter, once `apply` has changed a model.
  const std::map<std::string, PackedTensor>& packed() const { return packed_; }
  /// "12 weights are packed: 40 MiB -> 5.6 MiB, ..."; "" where none is.
  std::string summary() const;
  /// "PATH: int4, error 0.071" of each packed weight.
  std::vector<std::string> errors() const;

 private:
  bool trains(const State& state, const ParameterNames& names,
              const std::set<std::string>& new_layers) const;
  const StorageRule* rule_of(const State& state, const ParameterNames& names) const;
  void pack_once(const State& state, const StorageRule& rule);

  const OperatorSet& operators_;
  const RunConfig& config_;
  std::map<std::string, PackedTensor> packed_;
  std::map<std::string, std::string> paths_;  // by the name of the packed weight
};

}  // namespace tandem::api
