#include "engine/training/data/encode_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "engine/formats/delimited.h"
#include "engine/formats/files.h"

namespace tandem {
namespace {

DelimitedReader open_table(const DataConfig& config, const std::string& path) {
  const bool csv = config.kind == DataKind::csv;
  return {path, csv ? ',' : '\t', csv};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  return "\"" + std::string(text.substr(0, most)) + (text.size() > most ? "…\"" : "\"");
}

/// What is wrong with a cell.
struct BadCell {
  std::size_t field, column;  // of the plan, of the file
  const char* message;
  std::string expected, got;
  bool empty;
};

class Encoder {
 public:
  Encoder(const TablePlan& plan, const EncodeOptions& options, EncodedFile& result)
      : plan_(plan), result_(result) {
    result.values.resize(plan.vocabularies.size());
    constexpr std::size_t most_bytes = std::size_t{8} << 20;
    std::size_t row_bytes = 1;
    for (const TableField& field : plan.fields) row_bytes += field.stored.bytes();
    chunk_ = std::clamp<std::size_t>(most_bytes / row_bytes, 1, chunk_);
    for (std::size_t f = 0; f < plan.fields.size(); ++f) {
      const TableField& field = plan.fields[f];
      result.fields.emplace_back(field.columns.size());
      row_statistics_.emplace_back(field.columns.size());
      Out& out = outs_.emplace_back();
      out.row_bytes = field.stored.bytes();
      out.buffer.resize(out.row_bytes * chunk_);
      if (!options.prefix.empty()) {
        out.file = std::make_unique<OutputFile>(options.prefix + "." + std::to_string(f));
      }
    }
    if (!options.prefix.empty()) {
      lines_file_ = std::make_unique<OutputFile>(options.prefix + ".lines");
    }
  }

  /// Takes a row with the right number of fields, or says what is wrong and leaves it out.
  std::optional<BadCell> take(const std::vector<std::string_view>& cells, std::int64_t line) {
    seen_.clear();
    for (std::size_t f = 0; f < plan_.fields.size(); ++f) {
      const TableField& field = plan_.fields[f];
      Out& out = outs_[f];
      std::uint8_t* to = out.buffer.data() + rows_ * out.row_bytes;
      const std::size_t step =
          static_cast<std::size_t>(field.values_of_a_cell()) * size_of(field.stored.dtype);
      for (std::size_t c = 0; c < field.columns.size(); ++c, to += step) {
        row_statistics_[f][c] = {};
        if (auto bad = take_cell(f, c, cells[field.columns[c]], to)) return bad;
      }
    }
    for (const auto& [vocabulary, number] : seen_) result_.values[vocabulary].count(number);
    for (std::size_t f = 0; f < plan_.fields.size(); ++f) {
      for (std::size_t c = 0; c < row_statistics_[f].size(); ++c) {
        result_.fields[f][c].add(row_statistics_[f][c]);
      }
    }
    lines_.push_back(static_cast<std::uint32_t>(line));
    ++result_.rows;
    if (++rows_ == chunk_) flush();
    return std::nullopt;
  }

  void finish() {
    flush();
    for (Out& out : outs_) close(out.file);
    close(lines_file_);
  }

 private:
  struct Out {
    std::unique_ptr<OutputFile> file;
    std::vector<std::uint8_t> buffer;
    std::size_t row_bytes = 0;
  };

  static void close(std::unique_ptr<OutputFile>& file) {
    if (!file) return;
    file->sync();
    file->close();
  }

  void flush() {
    for (Out& out : outs_) {
      if (out.file) out.file->write(out.buffer.data(), rows_ * out.row_bytes);
    }
    if (lines_file_) {
      lines_file_->write(lines_.data(), lines_.size() * sizeof(std::uint32_t));
    }
    lines_.clear();
    rows_ = 0;
  }

  std::optional<BadCell> take_cell(std::size_t f, std::size_t c, std::string_view cell,
                                   std::uint8_t* to) {
    const TableField& field = plan_.fields[f];
    ColumnStatistics& statistics = row_statistics_[f][c];
    if (cell.empty()) {
      ++statistics.empty;
      if (field.has_missing) cell = field.missing;
    }
    if (field.most == 0) return take_value(f, c, cell, to);
    const std::size_t size = size_of(field.stored.dtype);
    std::int64_t kept = 0;
    bool more = !cell.empty();
    while (more) {
      const std::size_t end = cell.find(field.separator);
      if (kept == field.most) {
        ++statistics.cut;
      } else {
        if (auto bad = take_value(f, c, cell.substr(0, end), to)) return bad;
        ++kept;
        to += size;
      }
      more = end != std::string_view::npos;
      if (more) cell.remove_prefix(end + field.separator.size());
    }
    const bool numbered = field.end == TableField::End::vocabulary;
    for (; kept < field.most; ++kept, to += size) {
      store(field.stored.dtype, numbered ? -1 : field.pad, to);
    }
    return std::nullopt;
  }

  static void store(DType dtype, std::int64_t value, std::uint8_t* to) {
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      T stored;
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
        stored = T(static_cast<float>(value));
      } else {
        stored = static_cast<T>(value);
      }
      std::memcpy(to, &stored, sizeof stored);
    });
  }

  std::optional<BadCell> take_value(std::size_t f, std::size_t c, std::string_view text,
                                    std::uint8_t* to) {
    const TableField& field = plan_.fields[f];
    ColumnStatistics& statistics = row_statistics_[f][c];
    ++statistics.values;
    const auto bad = [&](const char* message, std::string expected) {
      return BadCell{f, field.columns[c], message, std::move(expected), shown(text), text.empty()};
    };
    if (!field.parses()) {
      store_id(field, c, text, statistics, to);
      return std::nullopt;
    }
    const DType dtype = field.stored.dtype;
    if (field.numeric.empty() && !is_float(dtype) && dtype != DType::boolean) {
      return take_integer(field, text, statistics, to, bad);
    }
    const std::optional<double> parsed = number_in<double>(text);
    if (!parsed) return bad(text.empty() ? "empty" : "not a number", "a number");
    double value = *parsed;
    for (const Transform& function : field.numeric) {
      if (function.kind == TransformKind::log1p) {
        value = std::log1p(std::max(value, 0.0));
      } else {
        value = static_cast<double>(
            std::upper_bound(function.bounds.begin(), function.bounds.end(), value) -
            function.bounds.begin());
      }
    }
    if (field.end != TableField::End::number) {
      char digits[24];
      const auto end =
          std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value)).ptr;
      store_id(field, c, {digits, static_cast<std::size_t>(end - digits)}, statistics, to);
      return std::nullopt;
    }
    bool fits = true;
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      T stored;
      if constexpr (std::is_same_v<T, bool>) {
        stored = value != 0;
      } else if constexpr (std::is_integral_v<T>) {
        stored = static_cast<T>(value);  // a bucket
      } else if constexpr (std::is_same_v<T, double>) {
        stored = value;
      } else {
        stored = T(static_cast<float>(value));
        fits = std::isfinite(static_cast<float>(stored));
      }
      std::memcpy(to, &stored, sizeof stored);
    });
    if (!fits) return bad("out of range", "a " + std::string(name_of(dtype)));
    statistics.take(value);
    return std::nullopt;
  }

  template <class Bad>
  static std::optional<BadCell> take_integer(const TableField& field, std::string_view text,
                                             ColumnStatistics& statistics, std::uint8_t* to,
                                             const Bad& bad) {
    std::optional<BadCell> problem;
    with_type(field.stored.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const std::optional<T> value = number_in<T>(text);
        if (value) {
          std::memcpy(to, &*value, sizeof *value);
          statistics.take(static_cast<double>(*value));
          return;
        }
        const std::string range = "a whole number from " +
                                  std::to_string(std::numeric_limits<T>::min()) + " to " +
                                  std::to_string(std::numeric_limits<T>::max());
        const bool number = number_in<double>(text).has_value();
        problem = bad(text.empty() ? "empty"
                      : number     ? "not a whole number in range"
                                   : "not a number",
                      range);
      }
    });
    return problem;
  }

  void store_id(const TableField& field, std::size_t c, std::string_view text,
                ColumnStatistics& statistics, std::uint8_t* to) {
    std::int64_t id = 0;
    if (field.end == TableField::End::hash) {
      const auto modulus = static_cast<std::uint64_t>(field.modulus);
      const std::uint64_t hash = field.hashes[c](text);
      const bool keeps_pad = field.most > 0 && field.pad == 0;  // id 0 is the padding's alone
      id = static_cast<std::int64_t>(keeps_pad ? 1 + hash % (modulus - 1) : hash % modulus);
      statistics.take(static_cast<double>(id));
    } else {
      const std::size_t number = field.vocabulary;
      const bool by_value = plan_.vocabularies[number].by_value;
      const auto column = by_value ? 0u : static_cast<std::uint32_t>(field.columns[c]);
      const std::int32_t value = result_.values[number].find_or_add(column, text);
      seen_.emplace_back(number, value);
      id = value;
    }
    store(field.stored.dtype, id, to);
  }

  const TablePlan& plan_;
  EncodedFile& result_;
  std::vector<Out> outs_;
  std::unique_ptr<OutputFile> lines_file_;
  std::vector<std::uint32_t> lines_;
  std::size_t chunk_ = 4096;  // rows that are written together
  std::size_t rows_ = 0;      // in the buffers
  std::vector<std::vector<ColumnStatistics>> row_statistics_;
  std::vector<std::pair<std::size_t, std::int32_t>> seen_;  // values of this row
};

std::vector<std::string> header_of(DelimitedReader& reader, const std::string& path) {
  const auto fail = [&](std::string message, std::size_t column) {
    throw Error(ErrorKind::data, Diagnostic{.message = std::move(message),
                                            .file = path,
                                            .line = static_cast<int>(reader.line()),
                                            .column = static_cast<int>(column)});
  };
  if (!reader.next()) fail("the file is empty: the first row names the columns", 0);
  if (!reader.problem().empty()) fail(reader.problem(), reader.problem_field() + 1);
  std::vector<std::string> names;
  for (const std::string_view name : reader.fields()) {
    names.emplace_back(trimmed(name));
    const bool twice = std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1;
    if (names.back().empty()) fail("a column without a name", names.size());
    if (twice) fail("two columns have the name `" + names.back() + "`", names.size());
  }
  return names;
}

}  // namespace

void ColumnStatistics::add(const ColumnStatistics& other) {
  values += other.values;
  empty += other.empty;
  cut += other.cut;
  unknown += other.unknown;
  if (other.least <= other.greatest) {
    take(other.least);
    take(other.greatest);
  }
}

std::vector<std::string> table_columns(const DataConfig& config, const std::string& path) {
  if (!config.columns.empty()) return config.columns;
  DelimitedReader reader = open_table(config, path);
  return header_of(reader, path);
}

EncodedFile encode_table(const DataConfig& config, const TablePlan& plan, const std::string& path,
                         const EncodeOptions& options) {
  EncodedFile result;
  DelimitedReader reader = open_table(config, path);
  if (config.header) {
    const std::vector<std::string> names = header_of(reader, path);
    for (std::size_t i = 0; i < std::max(names.size(), plan.columns.size()); ++i) {
      const std::string expected = i < plan.columns.size() ? plan.columns[i] : "";
      const std::string got = i < names.size() ? names[i] : "";
      if (expected == got) continue;
      throw Error(ErrorKind::data,
                  Diagnostic{.message = "the header names other columns",
                             .file = path,
                             .line = 1,
                             .column = static_cast<int>(i + 1),
                             .expected = expected.empty() ? "no more columns" : expected,
                             .got = got.empty() ? "no more columns" : got});
    }
  }
  Encoder encoder(plan, options, result);
  const auto report = [&](Diagnostic d) {
    ++result.bad;
    if (result.problems.size() == options.problems) return;
    d.file = path;
    d.line = static_cast<int>(reader.line());
    result.problems.push_back(std::move(d));
  };
  std::uint64_t told = 0, since = 0;
  while (reader.next()) {
    if (++since == 8192) {
      since = 0;
      if (options.on_read) options.on_read(reader.taken() - told);
      told = reader.taken();
      if (options.stop && *options.stop) break;
    }
    if (options.stops && result.problems.size() == options.problems) break;
    if (reader.line() > std::numeric_limits<int>::max()) {
      throw Error(
          ErrorKind::data,
          Diagnostic{.message = "more than 2^31 - 1 lines", .file = path, .fix = "split the file"});
    }
    const std::vector<std::string_view>& cells = reader.fields();
    if (!reader.problem().empty()) {
      report({.message = reader.problem(), .column = static_cast<int>(reader.problem_field() + 1)});
      continue;
    }
    if (cells.size() != plan.columns.size()) {
      const std::size_t at = std::min(cells.size(), plan.columns.size()) + 1;
      report({.message = cells.size() < at ? "the field of `" + plan.columns[at - 1] +
                                                 "` and those after it are missing"
                                           : "a field more than there are columns",
              .column = static_cast<int>(at),
              .expected = std::to_string(plan.columns.size()) + " fields",
              .got = std::to_string(cells.size())});
      continue;
    }
    if (const std::optional<BadCell> bad = encoder.take(cells, reader.line())) {
      Diagnostic d{.message = "column `" + plan.columns[bad->column] + "`: " + bad->message,
                   .column = static_cast<int>(bad->column + 1),
                   .path = "data.fields." + plan.fields[bad->field].name,
                   .expected = bad->expected,
                   .got = bad->got};
      if (bad->empty) d.fix = "begin `as` with \"missing(0)\" to give empty fields a value";
      if (reader.line() == 1 && !config.header && !bad->empty) {
        d.fix = "where the first row names the columns, set data.header = true";
      }
      report(std::move(d));
    }
  }
  if (options.on_read) options.on_read(reader.taken() - told);
  encoder.finish();
  return result;
}

}  // namespace tandem
