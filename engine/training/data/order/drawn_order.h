// Orders in which samples are drawn with replacement.
//
// What stands at a place depends on seed, epoch and the place alone: resumed anywhere, by any
// number of ranks, the rest is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/training/data/order/sample_order.h"

namespace tandem {

/// Sample i with the probability weights[i] / sum of the weights, which are finite, not negative
/// and not all 0: PyTorch's WeightedRandomSampler with replacement. `count`: of an epoch.
std::shared_ptr<const SampleOrder> weighted_order(const std::vector<double>& weights,
                                                  std::int64_t count);

/// A class, all with the same probability, then one of its samples. `classes`: by sample; numbers
/// that no sample has are no classes.
std::shared_ptr<const SampleOrder> balanced_order(const std::vector<std::int64_t>& classes,
                                                  std::int64_t count);

}  // namespace tandem
