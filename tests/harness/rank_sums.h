// The sum of all ranks' numbers, in the order that docs/processes.md states.
#pragma once

#include <bit>
#include <cstddef>
#include <vector>

namespace tandem::testing {

/// `of_rank`: each rank's number. Ranks that are a power of two apart add up their numbers, the
/// largest distance first.
inline float sum_of_ranks(std::vector<float> of_rank) {
  std::size_t count = of_rank.size();
  for (std::size_t distance = std::bit_floor(count); distance > 0; distance /= 2) {
    for (std::size_t rank = 0; rank + distance < count; ++rank)
      of_rank[rank] += of_rank[rank + distance];
    count = distance;
  }
  return of_rank[0];
}

}  // namespace tandem::testing
