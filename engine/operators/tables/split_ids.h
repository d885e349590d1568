// Which rows of a table a cache holds, as SplitIds looks it up: one bit a row, one number for 64.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/operators/tables/rows.h"

namespace tandem {

/// The operands `marks` (int64[W]) and `ranks` (int32[W]) of SplitIds for a table of that many
/// rows.
struct CachedMarks {
  static std::int64_t words(std::int64_t rows) { return (rows + 63) / 64; }
  /// `cached`: ascending row numbers, fewer than 2^31.
  CachedMarks(const std::vector<std::int64_t>& cached, std::int64_t rows);

  HostTensor marks, ranks;
};

/// The place of a row in the cache, or -1.
inline std::int32_t cached_place(const std::int64_t* marks, const std::int32_t* ranks,
                                 std::int64_t row) {
  const auto word = static_cast<std::uint64_t>(marks[row / 64]);
  const std::uint64_t bit = std::uint64_t{1} << (row % 64);
  if ((word & bit) == 0) return -1;
  return ranks[row / 64] + static_cast<std::int32_t>(std::popcount(word & (bit - 1)));
}

/// `id` of a table of `rows` rows as SplitIds sends it on; Id: int32 or int64.
template <class Id>
struct SplitId {
  Id cold = absent_id<Id>;
  std::int32_t hot = absent_id<std::int32_t>;

  SplitId(Id id, std::int64_t rows, const std::int64_t* marks, const std::int32_t* ranks) {
    const std::int64_t row = id < 0 ? static_cast<std::int64_t>(id) + rows : std::int64_t{id};
    const bool names_one = id != absent_id<Id> && row >= 0 && row < rows;
    const std::int32_t place = names_one ? cached_place(marks, ranks, row) : -1;
    if (place < 0) {
      cold = id;
    } else {
      hot = place;
    }
  }
};

}  // namespace tandem
