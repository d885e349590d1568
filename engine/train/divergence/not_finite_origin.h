// Where in a step values stop being finite: the operator, found by running the step again and
// checking every value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/train/divergence/origin_search.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

struct StepFacts {
  std::uint64_t number = 1;
  std::vector<bool> thawed;  // by rule of parameters.freeze
};

/// The origin in one training step over these samples, with the values that `states` has, which do
/// not change: that of its loss, or of what updates read where the loss is finite. Nothing where
/// all is finite, or where the step cannot be run again during the run: several ranks, models in
/// stages, states of more than 2 GiB.
std::optional<NotFiniteOrigin> not_finite_origin(const RunConfig& config, const RunParts& parts,
                                                 const DataSource& source,
                                                 std::span<const std::int64_t> samples,
                                                 const Augmentation& augmentation,
                                                 const StateStore& states, const StepFacts& step);

}  // namespace tandem
