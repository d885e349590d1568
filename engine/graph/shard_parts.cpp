#include "engine/graph/shard_parts.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace tandem {
namespace {

std::int64_t rows_of_whole(const StateShard& shard) {
  return shard.kind == ShardKind::elements ? shard.whole.elements() : shard.whole.shape[0];
}

/// A row of a block along another axis than the first: `pieces` runs of neighbours, one for each
/// place along the axes in between. Bytes.
struct RowPieces {
  std::size_t pieces = 1;
  std::size_t whole = 0, part = 0;    // from one to the next
  std::size_t first = 0, filled = 0;  // of the whole's
};

RowPieces pieces_of(const StateShard& shard) {
  const auto axis = static_cast<std::size_t>(shard.axis);
  const Shape& shape = shard.whole.shape;
  const Block block = block_of(shape[axis], shard.rank, shard.ranks);
  std::size_t unit = size_of(shard.whole.dtype);
  for (std::size_t i = axis + 1; i < shape.size(); ++i) unit *= static_cast<std::size_t>(shape[i]);
  RowPieces row;
  for (std::size_t i = 1; i < axis; ++i) row.pieces *= static_cast<std::size_t>(shape[i]);
  row.whole = unit * static_cast<std::size_t>(shape[axis]);
  row.part = unit * static_cast<std::size_t>(block.share);
  row.first = unit * static_cast<std::size_t>(block.first);
  row.filled = unit * static_cast<std::size_t>(block.filled);
  return row;
}

bool has_pieces(const StateShard& shard) {
  return shard.kind == ShardKind::blocks && shard.axis > 0;
}

}  // namespace

Block block_of(std::int64_t count, int rank, int ranks) {
  Block block;
  block.share = (count + ranks - 1) / ranks;
  block.first = std::min(rank * block.share, count);
  block.filled = std::min(block.share, count - block.first);
  return block;
}

std::int64_t filled_rows(const StateShard& shard) {
  const std::int64_t all = rows_of_whole(shard), rank = shard.rank, ranks = shard.ranks;
  if (shard.kind == ShardKind::rows) return all > rank ? (all - rank + ranks - 1) / ranks : 0;
  if (has_pieces(shard)) return all;
  return block_of(all, shard.rank, shard.ranks).filled;
}

std::size_t part_row_bytes(const StateShard& shard) {
  if (has_pieces(shard)) {
    const RowPieces row = pieces_of(shard);
    return row.pieces * row.part;
  }
  const std::int64_t all = rows_of_whole(shard);
  return all > 0 ? shard.whole.bytes() / static_cast<std::size_t>(all) : 0;
}

std::int64_t row_of_whole(const StateShard& shard, std::int64_t row) {
  assert(shard.kind != ShardKind::elements);
  if (shard.kind == ShardKind::rows) return row * shard.ranks + shard.rank;
  return has_pieces(shard) ? row : shard.rank * shard.part().shape[0] + row;
}

void copy_part(const StateShard& shard, const void* whole, std::int64_t first, std::int64_t rows,
               void* to) {
  assert(first >= 0 && first + rows <= filled_rows(shard));
  const std::size_t bytes = part_row_bytes(shard);
  if (rows == 0 || bytes == 0) return;
  const char* const from = static_cast<const char*>(whole);
  char* const into = static_cast<char*>(to);
  if (has_pieces(shard)) {
    const RowPieces row = pieces_of(shard);
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows) * row.pieces; ++i) {
      const std::size_t piece = static_cast<std::size_t>(first) * row.pieces + i;
      std::memcpy(into + i * row.part, from + piece * row.whole + row.first, row.filled);
      std::memset(into + i * row.part + row.filled, 0, row.part - row.filled);
    }
    return;
  }
  if (shard.kind != ShardKind::rows) {
    const std::int64_t begin =
        block_of(rows_of_whole(shard), shard.rank, shard.ranks).first + first;
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

void keep_part(State& state, ShardKind kind, int rank, int ranks, std::int64_t axis) {
  StateShard shard{kind, state.start.type(), rank, ranks, axis};
  state.start = state.starts_at_zero ? HostTensor(shard.part()) : part_of(state.start, shard);
  state.shard = std::move(shard);
}

}  // namespace tandem
