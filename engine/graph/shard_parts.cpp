#include "engine/graph/shard_parts.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace tandem {
namespace {

std::int64_t rows_of_whole(const StateShard& shard) {
  return shard.kind == ShardKind::rows ? shard.whole.shape[0] : shard.whole.elements();
}

}  // namespace

std::int64_t filled_rows(const StateShard& shard) {
  const std::int64_t all = rows_of_whole(shard), rank = shard.rank, ranks = shard.ranks;
  if (shard.kind == ShardKind::rows) return all > rank ? (all - rank + ranks - 1) / ranks : 0;
  const std::int64_t share = (all + ranks - 1) / ranks;
  return std::clamp<std::int64_t>(all - rank * share, 0, share);
}

std::size_t part_row_bytes(const StateShard& shard) {
  const std::int64_t all = rows_of_whole(shard);
  return all > 0 ? shard.whole.bytes() / static_cast<std::size_t>(all) : 0;
}

void copy_part(const StateShard& shard, const void* whole, std::int64_t first, std::int64_t rows,
               void* to) {
  assert(first >= 0 && first + rows <= filled_rows(shard));
  const std::size_t bytes = part_row_bytes(shard);
  if (rows == 0 || bytes == 0) return;
  const char* const from = static_cast<const char*>(whole);
  if (shard.kind == ShardKind::elements) {
    const std::int64_t begin = shard.rank * shard.part().elements() + first;
    std::memcpy(to, from + bytes * static_cast<std::size_t>(begin),
                bytes * static_cast<std::size_t>(rows));
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = (first + i) * shard.ranks + shard.rank;
    std::memcpy(static_cast<char*>(to) + bytes * static_cast<std::size_t>(i),
                from + bytes * static_cast<std::size_t>(row), bytes);
  }
}

HostTensor part_of(const HostTensor& whole, const StateShard& shard) {
  assert(whole.type() == shard.whole);
  HostTensor part(shard.part());
  copy_part(shard, whole.data(), 0, filled_rows(shard), part.data());
  return part;
}

void keep_part(State& state, ShardKind kind, int rank, int ranks) {
  StateShard shard{kind, state.start.type(), rank, ranks};
  state.start = state.starts_at_zero ? HostTensor(shard.part()) : part_of(state.start, shard);
  state.shard = std::move(shard);
}

}  // namespace tandem
