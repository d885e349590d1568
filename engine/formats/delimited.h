// Rows of delimited text: tab-separated values without quotes, and CSV as in RFC 4180.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/table_form.h"
#include "engine/formats/text_stream.h"

namespace tandem {

/// Rows end in LF or CR LF, the last one also without. A line with nothing in it is a row with one
/// empty field, unless only such lines follow until the end of the file. A byte order mark is
/// skipped. With quotes, a field that starts with `"` ends at the next lone `"`; in between, `""`
/// means one, and separators and line ends are part of the field.
class DelimitedReader {
 public:
  /// From byte `from` on, which is in line `line`; a gzip file only from its start.
  DelimitedReader(const std::string& path, char separator, bool quotes, std::uint64_t from = 0,
                  std::int64_t line = 1);

  /// Finds the separator by the first rows, before any is read. A first line "sep=;", as Excel
  /// takes it, names it.
  void find_form(const TableHints& hints);
  TableForm form() const { return {separator_, has_index_}; }

  /// Reads a row; false at the end. Errors as TextStream, and for rows and runs of empty lines
  /// above 16 MiB and rows of more than 2^20 fields.
  bool next();
  /// Reading ends before the first row that starts at byte `end` of the text or after it.
  void end_at(std::uint64_t end) { end_ = end; }
  /// Skips to after the next line end, whatever is before it, and counts lines from 1 from there
  /// on. False where there is none in reach.
  bool skip_line();

  /// The row's fields; valid until the next call.
  const std::vector<std::string_view>& fields() const { return fields_; }
  /// The line it starts on, from 1.
  std::int64_t line() const { return line_; }
  /// Whether its line is empty, without even quotes.
  bool is_empty_line() const { return empty_line_; }
  /// What is wrong with its quotes, or "". Such a row ends where its first line does.
  const std::string& problem() const { return problem_; }
  /// Which field that is, from 0.
  std::size_t problem_field() const { return spans_.empty() ? 0 : spans_.size() - 1; }

  /// Where the next row starts: byte of the text, and line.
  std::uint64_t position() const { return base_ + begin_; }
  std::int64_t next_line() const { return next_line_; }
  /// Bytes of the file that were read, packed ones where it is packed.
  std::uint64_t taken() const { return stream_.taken(); }
  bool packed() const { return stream_.packed(); }

 private:
  /// Loads more of the text, moving what lies from begin_ on; false at the end of the file.
  bool more();
  /// Where the line feed of the line from begin_ on is, or the end of the text; npos: too long.
  std::size_t line_end();
  /// Sets text_at_ to the first line from begin_ on that is not empty. Where there is none, goes to
  /// the end of the file and returns false.
  bool find_text();
  void skip_byte_order_mark();
  [[noreturn]] void refuse_fields() const;
  void split_plain(std::size_t end);
  /// Returns the place after the row; npos where its quotes are broken.
  std::size_t split_quoted();

  struct Span {
    std::size_t from, to;
    bool unescape;
  };

  std::string path_;
  TextStream stream_;
  char separator_;
  bool has_index_ = false;
  bool quotes_, ended_ = false, started_ = false, empty_line_ = false;
  std::string buffer_, unescaped_, problem_;
  std::size_t begin_ = 0, filled_ = 0;
  std::uint64_t base_;  // the place of buffer_[0] in the text
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t text_at_ = 0;  // byte of the text: lines from here to there are empty
  std::vector<Span> spans_;
  std::vector<std::string_view> fields_;
  std::int64_t line_ = 0, next_line_;
};

}  // namespace tandem
