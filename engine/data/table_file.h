// A file of a text table, row by row: which cell belongs to which column, and what is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/json_row.h"
#include "engine/data/row_encoder.h"
#include "engine/formats/delimited.h"

namespace tandem {

class TableFile {
 public:
  /// `may_lack`, by column of the plan: columns that nothing reads here. Then a header names the
  /// others in any order, and without a header rows have either all columns or none of these; the
  /// first row of either length decides, and one of the other length throws. Empty: the file is as
  /// in training. `path` "-": standard input. Throws Error{data} for a header that does not fit.
  TableFile(const DataConfig& config, const TablePlan& plan, const std::string& path,
            const std::vector<char>& may_lack = {});
  /// Reads plain text from byte `from` on, which is in line `line`, after the header if there is
  /// one, with the separator that was found for the file.
  TableFile(const DataConfig& config, const TablePlan& plan, const std::string& path,
            char separator, std::uint64_t from, std::int64_t line);

  /// Goes to the next row; false at the end.
  bool next();
  /// Takes the row into the encoder, or returns what is wrong with it. Throws Error{data} where
  /// rows of two lengths are mixed, so that it is unknown which ones lack a column.
  std::optional<Diagnostic> take(RowEncoder& encoder);
  /// A cell of the row that was taken, as it is in the file; "" where the row has none in that
  /// column, or where the row is an object that cannot be read.
  std::string_view cell(std::string_view column) const;
  /// Named as in the header or the configuration.
  const std::vector<std::string>& columns() const { return names_; }
  DelimitedReader& reader() { return reader_; }

  /// Line number of the row in the file, counting from 1.
  std::int64_t line() const { return reader_.line(); }
  /// Bytes of the file read so far.
  std::uint64_t taken() const { return reader_.taken(); }
  /// For messages.
  const std::string& name() const { return name_; }

 private:
  std::optional<Diagnostic> problem();
  std::optional<Diagnostic> take_json();
  std::optional<Diagnostic> header_among_rows() const;
  void refuse_mixed_lengths() const;
  void match_header(const std::vector<std::string>& names, const std::vector<char>& may_lack);
  void lack_columns();

  const TablePlan& plan_;
  std::string name_;
  DelimitedReader reader_;
  std::optional<JsonRow> json_;     // for rows that are objects
  bool may_name_columns_ = true;    // a row may
  bool header_;                     // it, or rows before the first one
  bool decided_ = true;             // how many cells a row has,
  std::int64_t decided_at_ = 0;     // by the row in this line
  std::vector<std::size_t> lacks_;  // columns of the plan that rows may lack all together
  std::vector<int> cell_of_;        // by column of the plan; -1: the file lacks it
  bool same_ = true;                // cells are the plan's columns
  std::vector<std::string> names_;  // names of the file's columns
  std::vector<std::string_view> cells_;
};

/// Names of the columns: those of the configuration, or of the file's first row. `notes` gets what
/// was found out about the file.
std::vector<std::string> table_columns(const DataConfig& config, const std::string& path,
                                       std::vector<std::string>* notes = nullptr);
/// For each of these columns that a header, the first line of `file`, does not name: what is wrong.
/// `separator_fix`: what to do where its cells are separated in another way.
std::vector<Diagnostic> missing_columns(const std::vector<std::string>& columns,
                                        const std::vector<std::string>& header,
                                        const std::string& file, const std::string& separator_fix);
/// What separates the cells of a file.
char separator_of(const DataConfig& config, const std::string& path);

}  // namespace tandem
