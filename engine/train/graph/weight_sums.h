// Denominators of weighted means, from the data.
#pragma once

#include <cstdint>
#include <span>

#include "engine/data/data_source.h"
#include "engine/losses/loss_weights.h"

namespace tandem {

/// The sum of the weights that a term gives these samples. Reads its labels and sample weights,
/// without augmentation.
double weight_sum(const LossTerm& term, const DataSource& source,
                  std::span<const std::int64_t> samples);

}  // namespace tandem
