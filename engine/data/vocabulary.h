// Values of columns with their counts, and the ids that the frequent ones get.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// (column, value) → number, dense from 0 in the order of first appearance. For values that are the
/// same in all columns the column is 0.
class ValueCounts {
 public:
  /// Throws Error{does_not_fit}, without a file, where the values take more memory than there is.
  std::int32_t find_or_add(std::uint32_t column, std::string_view value);
  /// -1 where it is unknown.
  std::int32_t find(std::uint32_t column, std::string_view value) const;
  void count(std::int32_t number, std::int64_t times = 1) {
    times_[static_cast<std::size_t>(number)] += times;
  }

  std::int64_t size() const { return static_cast<std::int64_t>(times_.size()); }
  std::uint32_t column(std::int64_t number) const {
    return columns_[static_cast<std::size_t>(number)];
  }
  std::string_view value(std::int64_t number) const;
  std::int64_t times(std::int64_t number) const { return times_[static_cast<std::size_t>(number)]; }

 private:
  std::size_t slot_of(std::uint64_t hash, std::uint32_t column, std::string_view value) const;
  void grow();
  void expect_room(std::size_t bytes) const;

  std::vector<std::int32_t> slots_;  // a power of two, at most half full; -1 = free
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> columns_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint64_t> ends_;  // end of each value in text_
  std::string text_;
};

/// Id 0 means every value that is unknown or rarer than the least count. Ids from 1 are in the
/// order of falling counts, then of columns, then of the values' bytes: over all columns, which
/// look up rows of one table, or in each column from 1 on, where each has its own table.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// The values of `all` that occur `least` times. `ids[number]` becomes the id of each of them.
  Vocabulary(const ValueCounts& all, std::int64_t least, std::vector<std::int32_t>& ids,
             bool by_table = false);

  /// Ids, 0 included: rows of a table that they look up; with several tables, of the largest.
  std::int64_t rows() const { return own_.empty() ? size() : own_rows_; }
  /// Values, 0 included.
  std::int64_t size() const { return values_.size() + 1; }
  std::int32_t id(std::uint32_t column, std::string_view value) const {
    const std::int32_t place = values_.find(column, value);
    return place < 0 || own_.empty() ? place + 1 : own_[static_cast<std::size_t>(place)];
  }
  /// The value at a place in the list of values, from 1 on; the place is the id where columns share
  /// a table.
  std::string_view value(std::int64_t place) const { return values_.value(place - 1); }
  std::uint32_t column(std::int64_t place) const { return values_.column(place - 1); }

  /// The largest id of a column; 0 where it has no values.
  std::int64_t greatest_id(std::uint32_t column) const;
  /// The text of a column's id; "" where it has none.
  std::string_view text_of(std::uint32_t column, std::int64_t id) const;

  /// "column<TAB>value<TAB>count" a line after one with these words; an id is its line's number,
  /// from 0, or that among the lines of its column. Tabs, line ends and backslashes in names and
  /// values are \t, \n, \r, \\. Columns have no name where `columns` is empty.
  std::string text(const std::vector<std::string>& columns) const;
  /// Throws std::invalid_argument (what is wrong).
  static Vocabulary parse(std::string_view text, const std::vector<std::string>& columns,
                          bool by_table = false);

 private:
  void number_by_table();

  ValueCounts values_;
  std::vector<std::int32_t> own_;  // by value: its id in its column; empty: all share one table
  std::int64_t own_rows_ = 1;
};

/// "vocabulary.NAME.tsv" with `_` for characters that are not plain; numbered where it is `taken`.
std::string vocabulary_file_name(const std::string& name, const std::vector<std::string>& taken);

/// What `hash(n)` takes modulo n: FNV-1a of 64 bits over the column's name, a zero byte and the
/// value, then the finaliser of splitmix64 without its addition.
class ColumnHash {
 public:
  explicit ColumnHash(std::string_view column);
  std::uint64_t operator()(std::string_view value) const;

 private:
  std::uint64_t start_;
};

}  // namespace tandem
