// Where in a step values stop being finite: the operator, found by running the step again with a
// look at every value.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "engine/graph/error.h"
#include "engine/training/data/data_source.h"
#include "engine/training/micro_batch_programs.h"

namespace tandem {

struct NotFiniteOrigin {
  std::string path, op;
  bool is_nan = false;       // else an infinity
  bool is_gradient = false;  // it began in the gradient of the operator at that path

  /// "the first value that is not finite: -inf, by Log", at the path; with what makes it so.
  Diagnostic diagnostic() const;
};

/// Of one training step over these samples, with the values that `states` has, which stay as they
/// are. Infinities that are meant, such as masks, are none that the loss or a gradient has. Nothing
/// where all is finite, or where the step cannot be run again beside the run: several ranks, models
/// in stages, tables.
std::optional<NotFiniteOrigin> not_finite_origin(const RunConfig& config, const RunParts& parts,
                                                 const DataSource& source,
                                                 std::span<const std::int64_t> samples,
                                                 const Augmentation& augmentation,
                                                 const StateStore& states, std::uint64_t step);

}  // namespace tandem
