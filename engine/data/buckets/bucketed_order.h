// An order whose steps have samples of one bucket each.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/data/buckets/buckets.h"
#include "engine/data/order/sample_order.h"

namespace tandem {

/// The samples of an epoch of `order`, in its order within each bucket: `batch_size` of a bucket
/// are a step. What is left of a bucket at the end of the epoch goes into the next longer one, so
/// that only the last step has fewer samples; its length is the longest. `mixes`: the whole steps
/// of an epoch are in random order, else in the order in which they become complete.
std::shared_ptr<const SampleOrder> bucketed_order(std::shared_ptr<const SampleOrder> order,
                                                  std::shared_ptr<const Buckets> buckets,
                                                  std::int64_t batch_size, bool mixes);

}  // namespace tandem
