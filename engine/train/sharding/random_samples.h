// Random numbers where several ranks share a micro-batch: which samples the elements belong to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

bool draws_random_numbers(const Graph& graph);

/// A forward graph that was made for that many samples.
struct GraphOfSamples {
  const Graph& graph;
  std::int64_t samples = 0;
};

/// Sets the attribute `samples` of the nodes of `rank` that draw random numbers, so that each
/// element gets the number that it has on one process with all samples of the micro-batch, `all`.
/// The axis of the samples is the one by which the node differs in `other`, which is made of the
/// same model for another number of samples; along it, the entries of a sample are neighbours. A
/// node without such an axis draws the same numbers on all ranks; one with several gets a line in
/// `notes`.
Graph with_random_samples(const GraphOfSamples& rank, const GraphOfSamples& other, std::int64_t all,
                          std::vector<std::string>& notes);

}  // namespace tandem
