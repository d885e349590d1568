#include "engine/data/row_encoder.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "engine/data/cells/cell_number.h"
#include "engine/data/cells/unknown_words.h"
#include "engine/data/tokens/token_samples.h"
#include "engine/formats/tokenizer/utf8.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// What `tokens` gives for one token.
std::int64_t value_of_token(const EncodedTokens& tokens, TokenPart part, std::size_t i) {
  switch (part) {
    case TokenPart::ids:
      return tokens.ids[i];
    case TokenPart::mask:
      return tokens.mask[i];
    case TokenPart::types:
      return tokens.types[i];
    case TokenPart::targets:
      break;
  }
  const bool follows = i + 1 < tokens.ids.size() && tokens.mask[i] != 0 && tokens.mask[i + 1] != 0;
  return follows ? static_cast<std::int64_t>(tokens.ids[i + 1]) : ignored_target;
}

/// The first ones of these words, for messages.
std::string words_shown(const std::vector<std::string>& words) {
  constexpr std::size_t most = 10;
  const auto in_quotes = [](const std::string& word) { return shown_cell(word); };
  return joined(std::span(words).first(std::min(words.size(), most)), ", ", in_quotes) +
         (words.size() > most ? ", …" : "");
}

/// Bytes below 0x80 are checked first, since most text has no others.
bool is_utf8(std::string_view text) {
  const bool is_ascii = std::all_of(text.begin(), text.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return is_ascii || invalid_utf8(text) == std::string_view::npos;
}

/// A class that a word may be another spelling of: the nearest one, else the only one that begins
/// with its first letter: Y of Yes.
std::string nearest_class(std::string_view word, const std::vector<std::string>& classes) {
  if (word.empty()) return "";
  const std::string near = nearest_word(
      word, static_cast<std::int64_t>(classes.size()),
      [&](std::int64_t i) -> std::string_view { return classes[static_cast<std::size_t>(i)]; });
  if (!near.empty()) return near;
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const auto begins_alike = [&](const std::string& name) {
    return lower(name[0]) == lower(word[0]);
  };
  const auto found = std::find_if(classes.begin(), classes.end(), begins_alike);
  const bool is_only =
      found != classes.end() && std::none_of(found + 1, classes.end(), begins_alike);
  const bool is_letter = lower(word[0]) >= 'a' && lower(word[0]) <= 'z';
  return is_only && is_letter ? *found : "";
}

/// Which class may be meant, and the function that makes it this one.
std::string fix_of_class(std::string_view word, const std::vector<std::string>& classes) {
  const std::string near = nearest_class(word, classes);
  const std::string function = spelling_function(word, near);
  return did_you_mean(near) +
         (function.empty() ? "" : " as = [ \"" + function + "\", … ] makes them one");
}

/// Where the first character ends; npos where it is the last one. What is no UTF-8 is taken byte by
/// byte.
std::size_t character_end(std::string_view text) {
  const std::size_t bytes = character_bytes(text[0]);
  const bool is_whole =
      bytes <= text.size() && invalid_utf8(text.substr(0, bytes)) == std::string_view::npos;
  const std::size_t end = is_whole ? bytes : 1;
  return end == text.size() ? std::string_view::npos : end;
}

void store(DType dtype, std::int64_t value, std::uint8_t* to) {
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

template <class Bad>
std::optional<BadCell> take_integer(const TableField& field, const CellText& cells,
                                    std::string& buffer, std::string_view text,
                                    ColumnStatistics& statistics, std::uint8_t* to,
                                    const Bad& bad) {
  std::optional<BadCell> problem;
  with_type(field.stored.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const std::optional<T> value = read_whole<T>(text, cells, buffer);
      if (value) {
        std::memcpy(to, &*value, sizeof *value);
        statistics.take(static_cast<double>(*value));
        return;
      }
      const std::string range = "a whole number from " +
                                std::to_string(std::numeric_limits<T>::min()) + " to " +
                                std::to_string(std::numeric_limits<T>::max());
      const bool number = read_double(text, cells, buffer).has_value();
      problem = bad(text.empty() ? "empty"
                    : number     ? "not a whole number in range"
                                 : "not a number",
                    range);
    }
  });
  return problem;
}

}  // namespace

void ColumnStatistics::take_unknown(std::string_view word) {
  if (unknown_examples.size() == most_examples ||
      std::find(unknown_examples.begin(), unknown_examples.end(), word) != unknown_examples.end())
    return;
  unknown_examples.emplace_back(word);
}

void ColumnStatistics::add(const ColumnStatistics& other) {
  values += other.values;
  empty += other.empty;
  cut += other.cut;
  unknown += other.unknown;
  for (const std::string& word : other.unknown_examples) take_unknown(word);
  dates += other.dates;
  small_times += other.small_times;
  sum += other.sum;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
}

std::size_t rows_at_a_time(const TablePlan& plan) {
  constexpr std::size_t most_bytes = std::size_t{8} << 20, most_rows = 4096;
  std::size_t row_bytes = 1;
  for (const TableField& field : plan.fields) row_bytes += field.stored.bytes();
  return std::clamp<std::size_t>(most_bytes / row_bytes, 1, most_rows);
}

RowEncoder::RowEncoder(const TablePlan& plan, std::size_t capacity,
                       const std::vector<Vocabulary>* vocabularies, EncodedFile& result)
    : plan_(plan), capacity_(capacity), vocabularies_(vocabularies), result_(result) {
  result.values.resize(plan.vocabularies.size());
  for (const TableField& field : plan.fields) {
    result.fields.emplace_back(field.columns.size());
    row_statistics_.emplace_back(field.columns.size());
    Out& out = outs_.emplace_back();
    out.row_bytes = field.stored.bytes();
    out.buffer.resize(out.row_bytes * capacity);
  }
  lines_.reserve(capacity);
  for (const std::string& word : plan.cells.missing.value_or(std::vector<std::string>())) {
    if (const auto number = read_double(trimmed(word), plan.cells, buffer_))
      missing_numbers_.push_back(*number);
  }
}

std::optional<BadCell> RowEncoder::take(const std::vector<std::string_view>& cells,
                                        std::int64_t line) {
  seen_.clear();
  row_ = &cells;
  for (std::size_t f = 0; f < plan_.fields.size(); ++f) {
    const TableField& field = plan_.fields[f];
    Out& out = outs_[f];
    std::uint8_t* to = out.buffer.data() + rows() * out.row_bytes;
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
  return std::nullopt;
}

/// Whether a cell is empty, or one of the spellings of an empty one.
bool RowEncoder::is_missing(const TableField& field, std::string_view cell) {
  if (cell.empty()) return true;
  if (!plan_.cells.missing) return field.parses() && is_usual_missing(cell);
  const std::vector<std::string>& words = *plan_.cells.missing;
  const std::string_view text = trimmed(cell);
  if (text.empty() && field.parses()) return true;
  const bool is_word = std::any_of(words.begin(), words.end(),
                                   [&](const std::string& word) { return trimmed(word) == text; });
  if (is_word || missing_numbers_.empty() || !field.parses()) return is_word;
  const auto number = read_double(text, plan_.cells, buffer_);
  return number && std::find(missing_numbers_.begin(), missing_numbers_.end(), *number) !=
                       missing_numbers_.end();
}

std::optional<BadCell> RowEncoder::take_cell(std::size_t f, std::size_t c, std::string_view cell,
                                             std::uint8_t* to) {
  const TableField& field = plan_.fields[f];
  ColumnStatistics& statistics = row_statistics_[f][c];
  missing_.reset();
  marks_ = &plan_.cells;
  cell = field.spelling(cell, spelt_);
  if (is_missing(field, cell)) {
    ++statistics.empty;
    missing_ = cell;
    marks_ = &plain_;
    cell = {};
    if (!field.missing.empty()) cell = field.missing[field.missing.size() > 1 ? c : 0];
  }
  if (field.tokenizer) return take_tokens(f, c, cell, to);
  if (field.most == 0) return take_value(f, c, cell, to);
  const std::size_t size = size_of(field.stored.dtype);
  const bool by_character = field.separator.empty();
  std::int64_t kept = 0;
  bool more = !cell.empty();
  while (more) {
    const std::size_t end = by_character ? character_end(cell) : cell.find(field.separator);
    if (kept == field.most) {
      ++statistics.cut;
    } else {
      const std::string_view value = cell.substr(0, end);
      if (auto bad = take_value(f, c, field.spelling.trims ? without_blanks(value) : value, to))
        return bad;
      ++kept;
      to += size;
    }
    more = end != std::string_view::npos;
    if (more) cell.remove_prefix(end + field.separator.size());
  }
  const bool numbered = field.vocabulary && vocabularies_ == nullptr;
  for (; kept < field.most; ++kept, to += size) {
    store(field.stored.dtype, numbered ? -1 : field.pad, to);
  }
  return std::nullopt;
}

std::optional<BadCell> RowEncoder::take_tokens(std::size_t f, std::size_t c, std::string_view text,
                                               std::uint8_t* to) {
  const TableField& field = plan_.fields[f];
  ColumnStatistics& statistics = row_statistics_[f][c];
  try {
    field.tokenizer->encode(text, field.encoding, scratch_, tokens_);
  } catch (const std::invalid_argument& problem) {
    return BadCell{f,
                   field.columns[c],
                   "not a text for the tokenizer",
                   problem.what(),
                   shown_cell(text),
                   text.empty()};
  }
  statistics.cut += tokens_.cut;
  const std::optional<std::uint32_t> unknown =
      field.part == TokenPart::ids ? field.tokenizer->unknown() : std::nullopt;
  if (unknown) {
    std::int64_t count = 0;  // padding may have the same id
    for (std::size_t i = 0; i < tokens_.ids.size(); ++i)
      count += tokens_.mask[i] != 0 && tokens_.ids[i] == *unknown ? 1 : 0;
    if (count > 0 && plan_.refuses_unknown) {
      return BadCell{f, field.columns[c], "holds what is in no token of the tokenizer",
                     "text of its vocabulary", shown_cell(text)};
    }
    statistics.unknown += count;
    const std::size_t known = result_.fields[f][c].unknown_examples.size();
    if (count > 0 && known < ColumnStatistics::most_examples) statistics.take_unknown(text);
  }
  const std::size_t size = size_of(field.stored.dtype);
  for (std::size_t i = 0; i < tokens_.ids.size(); ++i, to += size) {
    const std::int64_t value = value_of_token(tokens_, field.part, i);
    statistics.values += tokens_.mask[i];
    statistics.take(static_cast<double>(value));
    store(field.stored.dtype, value, to);
  }
  return std::nullopt;
}

std::optional<BadCell> RowEncoder::take_value(std::size_t f, std::size_t c, std::string_view text,
                                              std::uint8_t* to) {
  const TableField& field = plan_.fields[f];
  ColumnStatistics& statistics = row_statistics_[f][c];
  ++statistics.values;
  const auto bad = [&](const char* message, std::string expected) {
    BadCell cell{f, field.columns[c], message, std::move(expected), shown_cell(text), text.empty()};
    if (missing_) cell.got = shown_cell(*missing_);
    if (missing_ && !text.empty()) {
      cell.got += ", for which `missing` has " + shown_cell(text);
      return cell;
    }
    if (text.empty() || !field.parses()) return cell;
    cell.fix = remedy_of_marks(text, *marks_, fraction_cell(), !field.reading.number);
    if (cell.fix.empty() && field.reading.fix) cell.fix = field.reading.fix(text);
    if (cell.fix.empty()) cell.fix = remedy_of_number(text, *marks_, fraction_cell());
    return cell;
  };
  const auto take_id = [&](std::string_view value) -> std::optional<BadCell> {
    if (store_id(f, c, value, statistics, to)) return std::nullopt;
    if (!is_utf8(value)) {
      BadCell cell = bad("no text in UTF-8", "text in UTF-8");
      cell.fix = remedy_of_bytes;
      return cell;
    }
    if (field.vocabulary) return unknown_word(f, c, value);
    BadCell cell = bad(text.empty() ? "empty" : "none of the classes", words_shown(field.words));
    cell.fix = fix_of_class(value, field.words);
    return cell;
  };
  if (!field.parses()) return take_id(text);
  const DType dtype = field.stored.dtype;
  const bool is_read = static_cast<bool>(field.reading.number);
  if (field.numeric.empty() && !is_read && is_integer(dtype)) {
    return take_integer(field, *marks_, buffer_, text, statistics, to, bad);
  }
  const std::optional<double> parsed =
      is_read ? field.reading.number(text, *marks_) : read_double(text, *marks_, buffer_);
  if (!parsed) {
    return bad(text.empty() ? "empty"
               : is_read    ? field.reading.problem.c_str()
                            : "not a number",
               is_read ? field.reading.expected : "a number");
  }
  double value = *parsed;
  if (field.reading.is_time && !missing_) {
    constexpr std::size_t behind_year = 4;
    const bool is_date = text.size() > behind_year && text[behind_year] == '-';
    statistics.dates += is_date ? 1 : 0;
    statistics.small_times += !is_date && value >= 0 && value < 100'000 ? 1 : 0;
  }
  const bool has_fraction = value != std::trunc(value) && !missing_;
  if (has_fraction && fraction_.text.empty()) take_fraction(field.columns[c], text);
  if (std::isinf(value)) return bad("out of range", "a number up to 1.8e308");
  for (const TableField::Number& number : field.numeric) value = number.function->of(value);
  if (field.makes_ids()) {
    char digits[24];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value)).ptr;
    return take_id({digits, static_cast<std::size_t>(end - digits)});
  }
  bool fits = true;
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    T stored;
    if constexpr (std::is_same_v<T, bool>) {
      stored = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      stored = static_cast<T>(value);  // whole, and fits: NumberFunction::result
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

void RowEncoder::take_fraction(std::size_t column, std::string_view text) {
  const bool has_mark = text.find_first_of(".,") != std::string_view::npos;
  if (has_mark && read_double(text, plan_.cells, buffer_))
    fraction_ = {plan_.columns[column], std::string(text)};
}

const FractionCell& RowEncoder::fraction_cell() {
  for (const TableField& field : plan_.fields) {
    if (!field.parses() || field.most > 0) continue;
    for (const std::size_t column : field.columns) {
      if (fraction_.text.empty()) take_fraction(column, (*row_)[column]);
    }
  }
  return fraction_;
}

/// The error for an unknown word where these are refused.
BadCell RowEncoder::unknown_word(std::size_t f, std::size_t c, std::string_view word) const {
  const TableField& field = plan_.fields[f];
  const Vocabulary& vocabulary = (*vocabularies_)[*field.vocabulary];
  const bool by_value = plan_.vocabularies[*field.vocabulary].by_value;
  const std::string near =
      nearest_word(word, vocabulary.size() - 1, [&](std::int64_t i) -> std::string_view {
        const bool is_of_column = by_value || vocabulary.column(i + 1) == field.columns[c];
        return is_of_column ? vocabulary.value(i + 1) : std::string_view();
      });
  BadCell cell{f, field.columns[c], "not in the vocabulary of the training data",
               "a word of the training data", shown_cell(word)};
  cell.fix = did_you_mean(near) + (near.empty() ? "" : " or, ") +
             "without --strict-words it counts as unknown and has row 0";
  return cell;
}

bool RowEncoder::store_id(std::size_t f, std::size_t c, std::string_view text,
                          ColumnStatistics& statistics, std::uint8_t* to) {
  const TableField& field = plan_.fields[f];
  std::int64_t id = 0;
  const bool are_characters = field.most > 0 && field.separator.empty();
  const bool is_known = field.vocabulary && vocabularies_ != nullptr;
  if (!is_known && !are_characters && !is_utf8(text)) return false;
  if (!field.vocabulary) {
    id = field.ids[c](text);
    if (id < 0) return false;
    statistics.take(static_cast<double>(id));
  } else {
    const std::size_t number = *field.vocabulary;
    const bool by_value = plan_.vocabularies[number].by_value;
    const auto column = by_value ? 0u : static_cast<std::uint32_t>(field.columns[c]);
    if (vocabularies_ != nullptr) {
      id = (*vocabularies_)[number].id(column, text);
      if (id == 0) {
        if (plan_.refuses_unknown || (!are_characters && !is_utf8(text))) return false;
        ++statistics.unknown;
        const std::size_t known = result_.fields[f][c].unknown_examples.size();
        if (known < ColumnStatistics::most_examples) statistics.take_unknown(text);
      }
      statistics.take(static_cast<double>(id));
    } else {
      const std::int32_t value = result_.values[number].find_or_add(column, text);
      if (field.counts[c]) seen_.emplace_back(number, value);
      id = value;
    }
  }
  store(field.stored.dtype, id, to);
  return true;
}

}  // namespace tandem
