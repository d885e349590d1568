// Changes between parameters of float32 and parameters that Unpack makes float32 where they are
// read.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/operators/operator.h"
#include "engine/operators/packed/pack.h"

namespace tandem {

/// Whether the parameter has 16 bits, and all that reads it is an Unpack.
bool is_kept_in_16_bits(const Graph& graph, const State& state);

/// The graph in which these parameters, which are kept in 16 bits, are float32.
Graph widened_states(Graph graph, const OperatorSet& operators,
                     const std::vector<std::string>& names);

/// The graph with packed parameters, each reader of which reads them through an Unpack of its own.
/// `states`: packed data by the name of a parameter, which is of float32 or kept in 16 bits; it no
/// longer trains, and its scales become a further parameter, "NAME/scales". `narrow`: names of
/// parameters that are kept in 16 bits and stay so.
Graph packed_states(const Graph& graph, const OperatorSet& operators,
                    const std::map<std::string, PackedTensor>& states,
                    const std::vector<std::string>& narrow);

/// The name of the parameter that holds the scales of this one.
std::string scales_name(const std::string& parameter);
std::set<std::string> scales_names(const std::map<std::string, PackedTensor>& states);

}  // namespace tandem
