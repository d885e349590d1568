#include "engine/graph/shard_conversion.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace tandem {
namespace {

std::int64_t rows_of_whole(const StateShard& shard) {
  return shard.kind == ShardKind::elements ? shard.whole.elements() : shard.whole.shape[0];
}

}  // namespace

Block block_of(std::int64_t count, int rank, int ranks) {
  Block block;
  block.share = (count + ranks - 1) / ranks;
  block.first = std::min(rank * block.share, count);
  block.filled = std::min(block.share, count - block.first);
  return block;
}

std::int64_t whole_elements(const State& state) {
  return state.shard ? state.shard->whole.elements() : state.start.type().elements();
}

std::int64_t filled_rows(const StateShard& shard) {
  const std::int64_t all = rows_of_whole(shard), rank = shard.rank, ranks = shard.ranks;
  if (shard.kind == ShardKind::rows) return all > rank ? (all - rank + ranks - 1) / ranks : 0;
  if (shard.kind == ShardKind::column_blocks) return all;
  if (shard.kind == ShardKind::table) return rank == shard.owner ? all : 0;
  if (shard.kind == ShardKind::elements) {
    const std::int64_t share = shard.part().elements();
    return std::clamp<std::int64_t>(all - shard.rank * share, 0, share);
  }
  return block_of(all, shard.rank, shard.ranks).filled;
}

std::size_t part_row_bytes(const StateShard& shard) {
  if (shard.kind == ShardKind::column_blocks)
    return size_of(shard.whole.dtype) * static_cast<std::size_t>(shard.part().shape[1]);
  const std::int64_t all = rows_of_whole(shard);
  return all > 0 ? shard.whole.bytes() / static_cast<std::size_t>(all) : 0;
}

std::int64_t row_of_whole(const StateShard& shard, std::int64_t row) {
  assert(shard.kind != ShardKind::elements);
  if (shard.kind == ShardKind::rows) return row * shard.ranks + shard.rank;
  if (shard.kind == ShardKind::column_blocks || shard.kind == ShardKind::table) return row;
  return shard.rank * shard.part().shape[0] + row;
}

void copy_part(const StateShard& shard, const void* whole, std::int64_t first, std::int64_t rows,
               void* to) {
  assert(first >= 0 && first + rows <= filled_rows(shard));
  const std::size_t bytes = part_row_bytes(shard);
  if (rows == 0 || bytes == 0) return;
  const char* const from = static_cast<const char*>(whole);
  char* const into = static_cast<char*>(to);
  if (shard.kind == ShardKind::column_blocks) {
    const Block own = block_of(shard.whole.shape[1], shard.rank, shard.ranks);
    const std::size_t size = size_of(shard.whole.dtype);
    const std::size_t filled = size * static_cast<std::size_t>(own.filled);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t at = (first + i) * shard.whole.shape[1] + own.first;
      char* const row = into + bytes * static_cast<std::size_t>(i);
      std::memcpy(row, from + size * static_cast<std::size_t>(at), filled);
      std::memset(row + filled, 0, bytes - filled);
    }
    return;
  }
  if (shard.kind != ShardKind::rows) {
    const std::int64_t begin =
        shard.kind == ShardKind::table ? first
        : shard.kind == ShardKind::elements
            ? shard.rank * shard.part().elements() + first
            : block_of(rows_of_whole(shard), shard.rank, shard.ranks).first + first;
    std::memcpy(into, from + bytes * static_cast<std::size_t>(begin),
                bytes * static_cast<std::size_t>(rows));
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    std::memcpy(into + bytes * static_cast<std::size_t>(i),
                from + bytes * static_cast<std::size_t>(row_of_whole(shard, first + i)), bytes);
  }
}

HostTensor part_of(const HostTensor& whole, const StateShard& shard) {
  assert(whole.type() == shard.whole);
  HostTensor part(shard.part());
  copy_part(shard, whole.data(), 0, filled_rows(shard), part.data());
  return part;
}

void keep_part(State& state, ShardKind kind, int rank, int ranks, int owner) {
  StateShard shard{kind, state.start.type(), rank, ranks, owner};
  state.start = state.starts_at_zero ? HostTensor(shard.part()) : part_of(state.start, shard);
  state.shard = std::move(shard);
}

}  // namespace tandem
