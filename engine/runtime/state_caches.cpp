// Tables of which a device caches rows: what is read of them comes from there for these rows, and
// what is written goes there.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "engine/runtime/state_entry.h"

namespace tandem {
namespace {

constexpr std::size_t read_bytes = std::size_t{16} << 20;

// Walks a cache's places for rows of its table, in pieces of neighbouring places.
class CachePieces {
 public:
  /// `first` and `rows`: a range of the table's rows.
  CachePieces(const StateStore::Entry& cache, std::int64_t first, std::int64_t rows)
      : rows_(*cache.derived.as<CachedRows>()->rows) {
    assert(row_count(cache.type) == static_cast<std::int64_t>(rows_.size()));
    const auto begin = std::lower_bound(rows_.begin(), rows_.end(), first);
    next_ = begin - rows_.begin();
    end_ = std::lower_bound(begin, rows_.end(), first + rows) - rows_.begin();
    row_bytes_ = cache.seen().bytes() / std::max<std::size_t>(rows_.size(), 1);
    most_ = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(read_bytes / std::max<std::size_t>(row_bytes_, 1)));
    if (next_ < end_) {
      staging_.resize(row_bytes_ * static_cast<std::size_t>(std::min(most_, end_ - next_)));
    }
  }

  /// The next places [begin, begin + count); false where there are none left.
  bool next(std::int64_t& begin, std::int64_t& count) {
    begin = next_;
    count = std::min(most_, end_ - next_);
    next_ += std::max<std::int64_t>(count, 0);
    return count > 0 && row_bytes_ > 0;
  }
  std::int64_t row(std::int64_t place) const { return rows_[static_cast<std::size_t>(place)]; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// Room for the rows of a piece.
  char* staging() { return staging_.data(); }

 private:
  const std::vector<std::int64_t>& rows_;
  std::vector<char> staging_;
  std::int64_t next_ = 0, end_ = 0, most_ = 1;
  std::size_t row_bytes_ = 0;
};

std::size_t bytes_of(std::size_t row_bytes, std::int64_t rows) {
  return row_bytes * static_cast<std::size_t>(rows);
}

}  // namespace

void StateStore::read_cached(const std::string& table, std::int64_t first, std::int64_t rows,
                             void* to) const {
  for (const auto& cache : entries_) {
    if (!cache->derived.is_of<CachedRows>(table)) continue;
    CachePieces pieces(*cache, first, rows);
    const std::size_t bytes = pieces.row_bytes();
    for (std::int64_t begin = 0, count = 0; pieces.next(begin, count);) {
      read_rows(cache->name, begin, count, pieces.staging());
      for (std::int64_t k = 0; k < count; ++k) {
        std::memcpy(static_cast<char*>(to) + bytes_of(bytes, pieces.row(begin + k) - first),
                    pieces.staging() + bytes_of(bytes, k), bytes);
      }
    }
  }
}

void StateStore::write_cached(const std::string& table, std::int64_t first, std::int64_t rows,
                              const void* from) {
  for (const auto& cache : entries_) {
    if (!cache->derived.is_of<CachedRows>(table)) continue;
    CachePieces pieces(*cache, first, rows);
    const std::size_t bytes = pieces.row_bytes();
    for (std::int64_t begin = 0, count = 0; pieces.next(begin, count);) {
      for (std::int64_t k = 0; k < count; ++k) {
        std::memcpy(pieces.staging() + bytes_of(bytes, k),
                    static_cast<const char*>(from) + bytes_of(bytes, pieces.row(begin + k) - first),
                    bytes);
      }
      write_rows(cache->name, begin, count, pieces.staging());
    }
  }
}

void StateStore::fill_cache(const Entry& cache) {
  const Entry& table = *find(cache.derived.as<CachedRows>()->of);
  if (table.seen().dtype != cache.seen().dtype) return;  // copied once both are split, or neither
  CachePieces pieces(cache, 0, row_count(table.type));
  const std::size_t bytes = pieces.row_bytes();
  for (std::int64_t begin = 0, count = 0; pieces.next(begin, count);) {
    for (std::int64_t k = 0, run = 1; k < count; k += run, run = 1) {
      const std::int64_t row = pieces.row(begin + k);
      while (k + run < count && pieces.row(begin + k + run) == row + run) ++run;
      load_rows(table, row, run, pieces.staging() + bytes_of(bytes, k));
    }
    write_rows(cache.name, begin, count, pieces.staging());
  }
}

}  // namespace tandem
