// Denominators of weighted means, from the data.
#pragma once

#include <cstdint>
#include <span>

#include "engine/losses/loss_weights.h"
#include "engine/training/data/data_source.h"

namespace tandem {

/// The sum of the weights that a term gives these samples. Reads its labels and sample weights,
/// without augmentation.
double weight_sum(const LossTerm& term, const DataSource& source,
                  std::span<const std::int64_t> samples);

}  // namespace tandem
