#include "engine/train/group/row_exchange.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "engine/graph/shard_conversion.h"

namespace tandem {
namespace {

constexpr const char* operation = "rows of a checkpoint";

std::size_t bytes_of(std::size_t row_bytes, std::int64_t rows) {
  return row_bytes * static_cast<std::size_t>(rows);
}

}  // namespace

RowExchange::RowExchange(const StateStore& states, Device& host, std::size_t window)
    : states_(states),
      host_(host),
      ranks_(*host.communicator()),
      stream_(host.make_stream(StreamKind::collective, "checkpoint")),
      window_bytes_(window) {}

void RowExchange::begin(const std::string& name, std::vector<RowRange> ranges) {
  assert(ranges.size() == static_cast<std::size_t>(ranks_.ranks()));
  name_ = name;
  shard_ = states_.shard(name);
  ranges_ = std::move(ranges);
  const std::int64_t rows = row_count(shard_->whole);
  row_bytes_ = rows > 0 ? shard_->whole.bytes() / static_cast<std::size_t>(rows) : 0;
  const std::int64_t fit =
      static_cast<std::int64_t>(window_bytes_ / std::max<std::size_t>(row_bytes_, 1));
  // In a window of this size, a multiple of the ranks, each rank keeps equally many rows.
  window_ = std::max<std::int64_t>(fit / ranks_.ranks(), 1) * ranks_.ranks();
  done_ = most_ = taken_ = 0;
  for (const RowRange& range : ranges_) most_ = std::max(most_, range.rows);
  if (row_bytes_ == 0) most_ = 0;
  window_ = std::min(window_, (most_ + ranks_.ranks() - 1) / ranks_.ranks() * ranks_.ranks());
}

std::int64_t RowExchange::own_left() const {
  const RowRange& own = ranges_[static_cast<std::size_t>(ranks_.rank())];
  return std::min(done_, own.rows) - taken_;
}

void RowExchange::read(std::int64_t rows, void* to) {
  auto* at = static_cast<char*>(to);
  while (rows > 0 && row_bytes_ > 0) {
    if (own_left() == 0) exchange();
    const std::int64_t some = std::min(rows, own_left());
    assert(some > 0);
    const std::int64_t in_window = taken_ % window_;
    std::memcpy(at, rows_.data() + bytes_of(row_bytes_, in_window), bytes_of(row_bytes_, some));
    at += bytes_of(row_bytes_, some);
    taken_ += some;
    rows -= some;
  }
}

void RowExchange::end() {
  while (done_ < most_) {
    taken_ = std::min(done_, ranges_[static_cast<std::size_t>(ranks_.rank())].rows);
    exchange();
  }
  shard_ = nullptr;
}

void RowExchange::exchange() {
  rows_.resize(bytes_of(row_bytes_, window_));
  if (shard_->kind == ShardKind::rows)
    exchange_rows();
  else if (shard_->kind != ShardKind::column_blocks)
    exchange_elements();
  else
    exchange_pieces();
  done_ += window_;
}

void RowExchange::all_to_all(std::size_t bytes) {
  const RankElements elements{sent_.data(), received_.data(), bytes, DType::uint8};
  ranks_.all_to_all(*stream_, operation, elements);
  ranks_.wait(*stream_);
  host_.synchronize();
}

// Row r of the whole is row r / ranks of rank r % ranks: a window has as many of each rank.
void RowExchange::exchange_rows() {
  const std::int64_t ranks = ranks_.ranks(), each = window_ / ranks;
  const std::size_t bytes = bytes_of(row_bytes_, each);
  sent_.resize(bytes * static_cast<std::size_t>(ranks));
  received_.resize(sent_.size());
  // The first row from `row` on that `rank` keeps, in its part.
  const auto first_of = [&](std::int64_t rank, std::int64_t row) {
    return row <= rank ? 0 : (row - rank + ranks - 1) / ranks;
  };
  for (std::int64_t to = 0; to < ranks; ++to) {
    const RowRange& range = ranges_[static_cast<std::size_t>(to)];
    if (done_ >= range.rows) continue;
    const std::int64_t first = first_of(ranks_.rank(), range.first + done_);
    const std::int64_t count = std::clamp<std::int64_t>(filled_rows(*shard_) - first, 0, each);
    if (count > 0)
      states_.read_rows(name_, first, count, sent_.data() + bytes * static_cast<std::size_t>(to));
  }
  all_to_all(bytes);
  const RowRange& own = ranges_[static_cast<std::size_t>(ranks_.rank())];
  const std::int64_t begin = own.first + done_,
                     end = std::min(own.first + own.rows, begin + window_);
  for (std::int64_t from = 0; from < ranks && begin < end; ++from) {
    const char* next = received_.data() + bytes * static_cast<std::size_t>(from);
    for (std::int64_t row = first_of(from, begin) * ranks + from; row < end; row += ranks) {
      std::memcpy(rows_.data() + bytes_of(row_bytes_, row - begin), next, row_bytes_);
      next += row_bytes_;
    }
  }
}

// Every rank has a piece of each row.
void RowExchange::exchange_pieces() {
  const auto ranks = static_cast<std::size_t>(ranks_.ranks());
  const std::size_t piece = part_row_bytes(*shard_), bytes = bytes_of(piece, window_);
  sent_.resize(bytes * ranks);
  received_.resize(sent_.size());
  for (std::size_t to = 0; to < ranks; ++to) {
    const std::int64_t rows = std::clamp<std::int64_t>(ranges_[to].rows - done_, 0, window_);
    if (rows > 0)
      states_.read_rows(name_, ranges_[to].first + done_, rows, sent_.data() + bytes * to);
  }
  all_to_all(bytes);
  const std::int64_t own = ranges_[static_cast<std::size_t>(ranks_.rank())].rows;
  const std::int64_t rows = std::clamp<std::int64_t>(own - done_, 0, window_);
  for (std::size_t from = 0; from < ranks; ++from) {
    const std::size_t begin = piece * from;
    const std::size_t filled = begin < row_bytes_ ? std::min(piece, row_bytes_ - begin) : 0;
    for (std::int64_t row = 0; row < rows && filled > 0; ++row) {
      std::memcpy(rows_.data() + bytes_of(row_bytes_, row) + begin,
                  received_.data() + bytes * from + bytes_of(piece, row), filled);
    }
  }
}

// A window lies in the parts of few ranks, which pass it on to all: the states of an optimizer are
// of the size of its weights, which are sent to all of them in every step. Rows of a whole table
// are with its owner.
void RowExchange::exchange_elements() {
  const std::size_t size = size_of(shard_->whole.dtype);
  const auto columns = static_cast<std::int64_t>(row_bytes_ / size);
  const bool is_table = shard_->kind == ShardKind::table;
  const std::int64_t share = is_table ? shard_->whole.elements() : shard_->part().elements();
  const std::int64_t in_part_row = shard_->kind == ShardKind::elements ? 1 : columns;
  for (std::size_t to = 0; to < ranges_.size(); ++to) {
    const RowRange& range = ranges_[to];
    if (done_ >= range.rows) continue;
    const std::int64_t begin = (range.first + done_) * columns,
                       end = (range.first + std::min(range.rows, done_ + window_)) * columns;
    received_.resize(static_cast<std::size_t>(end - begin) * size);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t piece = at / share, next = std::min(end, (piece + 1) * share);
      const std::int64_t owner = is_table ? shard_->owner : piece;
      char* const place = received_.data() + static_cast<std::size_t>(at - begin) * size;
      if (owner == ranks_.rank())
        states_.read_rows(name_, (at - piece * share) / in_part_row, (next - at) / in_part_row,
                          place);
      const RankElements elements{place, place, static_cast<std::size_t>(next - at) * size,
                                  DType::uint8};
      ranks_.broadcast(*stream_, operation, elements, static_cast<int>(owner));
      at = next;
    }
    ranks_.wait(*stream_);
    host_.synchronize();
    if (to == static_cast<std::size_t>(ranks_.rank()))
      std::memcpy(rows_.data(), received_.data(), received_.size());
  }
}

}  // namespace tandem
