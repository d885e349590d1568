// Epochs over several sources that are mixed by weight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/order/sample_order.h"

namespace tandem {

/// Consecutive samples of the data that come from one source.
struct SourceShare {
  std::int64_t first = 0, count = 0;  // samples, at least one
  double weight = 1;                  // above 0
};

/// Each place takes the source that has given the least of its share so far, so that sources are
/// spread evenly and every batch has about their weights. A source goes through its samples in a
/// shuffle of its own, from one epoch into the next: each of its samples is read once before any is
/// read again.
///
/// An epoch ends where a source that is to give the next sample has given as many as it has
/// (`first`), or where each has given as many as it has, some of them more (`last`).
/// Throws Error{usage} where an epoch would have more than 2^31 places.
std::shared_ptr<const SampleOrder> source_order(std::vector<SourceShare> sources, EpochEnd end,
                                                const ShuffleConfig& shuffle);

/// Which of the sources take the first `places` of an epoch, and how often.
std::vector<std::int64_t> places_of_sources(const std::vector<SourceShare>& sources,
                                            std::int64_t places);

}  // namespace tandem
