// Orders in which samples are drawn with replacement.
//
// The sample at a place depends only on seed, epoch and place: wherever a run is resumed, and with
// any number of ranks, the rest is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/order/sample_order.h"

namespace tandem {

/// Sample i with the probability weights[i] / sum of the weights, which are finite, not negative
/// and not all 0: PyTorch's WeightedRandomSampler with replacement. `count`: samples an epoch.
std::shared_ptr<const SampleOrder> weighted_order(const std::vector<double>& weights,
                                                  std::int64_t count);

/// Draws a class, all with the same probability, then one of its samples. `classes`: by sample;
/// numbers that no sample has are no classes.
std::shared_ptr<const SampleOrder> balanced_order(const std::vector<std::int64_t>& classes,
                                                  std::int64_t count);

}  // namespace tandem
