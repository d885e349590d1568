// What PyTorch refuses of a model in training mode, or warns about, as far as shapes tell: checked
// for every program of a run, that of a smaller last batch included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"

namespace tandem {

/// The samples that one program computes in training.
struct TrainingCase {
  std::int64_t samples = 0;            // computed by this rank
  std::int64_t all_samples = 0;        // total over all ranks
  bool statistics_over_ranks = false;  // model.sync_batch_norm
  bool ends_epoch = false;             // a step that is smaller than batch_size
};

struct TrainingModeReport {
  std::vector<Diagnostic> problems;   // what PyTorch refuses
  std::vector<std::string> warnings;  // what it warns about, or what gives NaN
};

/// `forward`: imported for training with that many samples.
/// Refused: BatchNormalization by a batch with one value for each channel, instance and group
/// normalization of one value, the largest or least of nothing. Kernels larger than their input are
/// refused where types are inferred.
/// Warned about: normalization of one value otherwise (the result is the bias), a division by a
/// constant 0 (the deviation of one value), the mean of nothing, a constant mask that hides all
/// keys of a query.
TrainingModeReport check_training_mode(const Graph& forward, const TrainingCase& of);

}  // namespace tandem
