// Cells of a text table into arrays: the functions of fields that act on text, row by row.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/cells/number_remedy.h"
#include "engine/data/table_plan.h"

namespace tandem {

/// Statistics of the values that a field takes from one column.
struct ColumnStatistics {
  std::int64_t values = 0, empty = 0;
  std::int64_t cut = 0;      // values beyond the most that are kept of a cell
  std::int64_t unknown = 0;  // values that the vocabulary does not have
  static constexpr std::size_t most_examples = 3;
  std::vector<std::string> unknown_examples;  // the first different ones
  std::int64_t dates = 0;                     // by ISO 8601, of fields that read times
  std::int64_t small_times = 0;               // plain numbers from 0 to 100000, of these
  double sum = 0;                             // sum of the values given to `take`
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();

  void take(double value) {
    sum += value;
    least = value < least ? value : least;
    greatest = value > greatest ? value : greatest;
  }
  void take_unknown(std::string_view word);
  void add(const ColumnStatistics& other);
};

struct EncodedFile {
  std::int64_t rows = 0, bad = 0;
  std::vector<Diagnostic> problems;                   // the first bad rows
  std::vector<std::vector<ColumnStatistics>> fields;  // by field and column
  std::vector<ValueCounts> values;                    // by vocabulary
};

/// What is wrong with a cell.
struct BadCell {
  std::size_t field = 0, column = 0;  // indices in the plan
  const char* message = "";
  std::string expected, got;
  bool empty = false;
  std::string fix = {};
};

/// Holds up to `capacity` rows until they are cleared away; counts them in `result`.
class RowEncoder {
 public:
  /// `vocabularies`: by their number in the plan, fields hold ids. Null: fields hold numbers of
  /// `EncodedFile::values`, and -1 where `split` fills up.
  RowEncoder(const TablePlan& plan, std::size_t capacity,
             const std::vector<Vocabulary>* vocabularies, EncodedFile& result);

  /// Takes a row with a cell for each column of the plan, or says what is wrong and leaves it out.
  std::optional<BadCell> take(const std::vector<std::string_view>& cells, std::int64_t line);

  std::size_t rows() const { return lines_.size(); }
  bool full() const { return rows() == capacity_; }
  /// The rows of a field, one after the other.
  const std::uint8_t* field(std::size_t field) const { return outs_[field].buffer.data(); }
  std::uint8_t* field(std::size_t field) { return outs_[field].buffer.data(); }
  std::size_t row_bytes(std::size_t field) const { return outs_[field].row_bytes; }
  /// Where in the file each row is.
  std::span<const std::uint32_t> lines() const { return lines_; }
  void clear() { lines_.clear(); }

 private:
  struct Out {
    std::vector<std::uint8_t> buffer;
    std::size_t row_bytes = 0;
  };

  /// In a column of numbers, the spelling -999 also matches -999.0.
  bool is_missing(const TableField& field, std::string_view cell);
  std::optional<BadCell> take_cell(std::size_t f, std::size_t c, std::string_view cell,
                                   std::uint8_t* to);
  std::optional<BadCell> take_value(std::size_t f, std::size_t c, std::string_view text,
                                    std::uint8_t* to);
  std::optional<BadCell> take_tokens(std::size_t f, std::size_t c, std::string_view text,
                                     std::uint8_t* to);
  /// A number with a mark or a fraction from this row, or with a fraction from an earlier one.
  const FractionCell& fraction_cell();
  void take_fraction(std::size_t column, std::string_view text);
  BadCell unknown_word(std::size_t f, std::size_t c, std::string_view word) const;
  /// False where the text has no id, or is no text.
  bool store_id(std::size_t f, std::size_t c, std::string_view text, ColumnStatistics& statistics,
                std::uint8_t* to);

  const TablePlan& plan_;
  const std::size_t capacity_;
  const std::vector<Vocabulary>* vocabularies_;
  EncodedFile& result_;
  std::vector<Out> outs_;
  std::vector<std::uint32_t> lines_;
  std::vector<std::vector<ColumnStatistics>> row_statistics_;
  std::vector<std::pair<std::size_t, std::int32_t>> seen_;  // values of this row
  EncodeScratch scratch_;
  EncodedTokens tokens_;
  std::vector<double> missing_numbers_;      // spellings of empty cells that are numbers
  std::string spelt_;                        // the cell in another spelling
  std::string buffer_;                       // a number without its marks, before it is parsed
  std::optional<std::string_view> missing_;  // how the cell says that it is empty
  CellText plain_;                           // how a configuration writes numbers and empty cells
  const CellText* marks_ = &plain_;          // how numbers are written in the text being read
  const std::vector<std::string_view>* row_ = nullptr;  // the row being taken
  FractionCell fraction_;
};

/// Rows that take about 8 MiB, 4096 at most.
std::size_t rows_at_a_time(const TablePlan& plan);

}  // namespace tandem
