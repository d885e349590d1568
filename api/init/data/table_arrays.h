// Code shared by all kinds of text tables: limits on what is read, columns that form an axis, and
// columns of texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "api/init/facts.h"
#include "engine/formats/delimited.h"

namespace tandem::api {

/// Names of the columns as training reads them: from the first line that is not empty, without
/// spaces around names. Empty at the end of the file.
std::vector<std::string> names_in_header(DelimitedReader& reader);

/// Where a row of a table begins.
struct RowPlace {
  std::string_view path;
  std::int64_t line = 0;
};
/// "the text "NA" in line 7 of rows.csv"
std::string text_in_row(std::string_view text, const RowPlace& place);

/// Limits how much of a table is read; at least one row always is.
class TableBounds {
 public:
  /// Counts a row that ends at this byte of its file's text; false where it is beyond the limits.
  bool take(std::uint64_t end) {
    is_over_ = rows_ > 0 && (rows_ == most_rows || before_ + end > most_bytes);
    if (is_over_) return false;
    ++rows_;
    end_ = end;
    return true;
  }
  void next_file() { before_ += end_, end_ = 0; }
  std::int64_t rows() const { return rows_; }
  bool is_over() const { return is_over_; }
  std::uint64_t bytes() const { return before_ + end_; }

 private:
  static constexpr std::int64_t most_rows = 100'000;
  static constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  std::int64_t rows_ = 0;
  std::uint64_t before_ = 0, end_ = 0;
  bool is_over_ = false;
};

/// Says how many rows were read, and estimates how many there are in all by the size of the files,
/// where they are not packed.
void take_bounds(const TableBounds& bounds, const std::vector<std::string>& paths,
                 DataFacts& facts);

/// Whether each value of a column occurs only once, as identifiers do.
class EachOnce {
 public:
  void add(std::string_view cell) {
    if (repeats_) return;
    repeats_ = cell.empty() || !seen_.insert(std::hash<std::string_view>{}(cell)).second;
    if (repeats_) std::unordered_set<std::size_t>().swap(seen_);
  }
  /// False for few rows, whose values may be distinct by chance.
  bool holds() const { return seen_.size() >= least_rows; }

 private:
  static constexpr std::size_t least_rows = 20;
  std::unordered_set<std::size_t> seen_;  // hashes; emptied at the first repetition
  bool repeats_ = false;
};

using ColumnList = std::vector<const ArrayFacts*>;

/// The columns as one array, with an axis after that of samples.
ArrayFacts stacked_columns(const std::string& name, const ColumnList& columns);

struct KeptColumns {
  ColumnList kept;
  std::vector<std::string> left_out;  // names of identifiers
};
KeptColumns without_identifiers(const ColumnList& columns);

/// Fits columns to inputs: adds columns that form an axis, and columns for a tokenizer.
void fit_table(const std::vector<InputFacts>& inputs, DataFacts& facts);

/// Adds, as one array each: columns of one name with numbers at the end; all columns except those
/// named like a label or an input; and the columns of numbers, or of text, among these. If none of
/// these arrays fits an input, but one would without its identifier columns, adds that array too,
/// unless no column is named like a label: the label may then be one of these columns.
void add_stacks(const std::vector<InputFacts>& inputs, DataFacts& facts);

/// For each input that takes a row of whole numbers, adds an array of its name: the ids that a
/// tokenizer.json next to the model or the data makes of the column of texts, or the mask of real
/// tokens against padding. Inputs of different lengths have arrays of their own. The labels of a
/// decoder are the array "labels", from the texts of that name. Where several columns could be the
/// only input of ids, they become its choices.
void add_token_arrays(const std::vector<InputFacts>& inputs, DataFacts& facts);

}  // namespace tandem::api
