// Between a whole and the parts of it that ranks keep.
#pragma once

#include <cstdint>

#include "engine/graph/graph.h"

namespace tandem {

/// Of `count` neighbours that ranks have in equal blocks, those of one rank.
struct Block {
  std::int64_t share = 0;  // of a rank, padding included
  std::int64_t first = 0, filled = 0;
};
Block block_of(std::int64_t count, int rank, int ranks);

/// Of the part's rows (ShardKind::elements: of its elements) those that the whole fills, of
/// column_blocks in part; the others are padding behind them.
std::int64_t filled_rows(const StateShard& shard);

/// Bytes of a row of the part, which is one element where it is flat.
std::size_t part_row_bytes(const StateShard& shard);

/// The row of the whole that a row of the part is, or is a piece of; not of ShardKind::elements.
std::int64_t row_of_whole(const StateShard& shard, std::int64_t row);

/// Copies rows [first, first + rows) of the part, all of them filled, out of the whole; padding
/// within them becomes zeros.
void copy_part(const StateShard& shard, const void* whole, std::int64_t first, std::int64_t rows,
               void* to);

/// This rank's part, with zeros as padding.
HostTensor part_of(const HostTensor& whole, const StateShard& shard);

/// Makes a state that holds a whole the part of it; the type of `initial` is the caller's business.
/// `owner`: of ShardKind::table.
void keep_part(State& state, ShardKind kind, int rank, int ranks, int owner = 0);

}  // namespace tandem
