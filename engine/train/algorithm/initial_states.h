// What a model's own initialization makes of its states, before the first step.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/train/algorithm/algorithm.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

/// Runs the initialization on the host, with random numbers of this seed. By state; nothing where
/// the model has no initialization.
std::map<std::string, HostTensor> initial_states(const TrainingAlgorithm& algorithm,
                                                 const RunParts& parts, std::uint64_t seed);

}  // namespace tandem
