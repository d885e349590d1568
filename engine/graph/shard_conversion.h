// Conversions between a whole state and the shards of it that ranks keep.
#pragma once

#include <cstdint>

#include "engine/graph/graph.h"

namespace tandem {

/// One rank's block where `count` neighbours are split over the ranks in equal blocks.
struct Block {
  std::int64_t share = 0;  // the size of each rank's block, padding included
  std::int64_t first = 0, filled = 0;
};
Block block_of(std::int64_t count, int rank, int ranks);

/// Elements of a state; of a shard: of its whole.
std::int64_t whole_elements(const State& state);

/// How many of the shard's rows (ShardKind::elements: elements) the whole fills, for column_blocks
/// in part; the others come after them and are padding.
std::int64_t filled_rows(const StateShard& shard);

/// Bytes of a row of the shard; a row of a flat shard is one element.
std::size_t part_row_bytes(const StateShard& shard);

/// The row of the whole that a row of the shard is, or is a piece of; not for ShardKind::elements.
std::int64_t row_of_whole(const StateShard& shard, std::int64_t row);

/// Copies rows [first, first + rows) of the shard, all of them filled, out of the whole; padding
/// within them becomes zeros.
void copy_part(const StateShard& shard, const void* whole, std::int64_t first, std::int64_t rows,
               void* to);

/// This rank's shard, with zeros as padding.
HostTensor part_of(const HostTensor& whole, const StateShard& shard);

/// Replaces the whole that a state holds by the rank's shard of it; the caller changes the type of
/// `initial`. `owner`: for ShardKind::table.
void keep_part(State& state, ShardKind kind, int rank, int ranks, int owner = 0);

}  // namespace tandem
