// Initial parameter values from the configuration: init rules, then files to load.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/runtime/program.h"
#include "engine/train/loading/weights_match.h"

namespace tandem {

/// Applies [parameters] init and load to the states of `graph`. Random values depend only on (seed,
/// parameter name). Throws Error{usage|data} with every problem; returns notes for people.
std::vector<std::string> initialise_parameters(const ParametersConfig& config, std::uint64_t seed,
                                               const Graph& graph, StateStore& states,
                                               const LoadingParts& parts = {});

/// The values that initialise_parameters would write, by state, but only of states that the rules
/// cover: for graphs that no program has been made of.
std::map<std::string, HostTensor> initial_values(const ParametersConfig& config, std::uint64_t seed,
                                                 const Graph& graph,
                                                 const LoadingParts& parts = {});

/// A start value that depends only on (seed, name), as those above do: uniform in [-bound, bound).
HostTensor uniform_values(std::uint64_t seed, const std::string& name, const TensorType& type,
                          double bound);

}  // namespace tandem
