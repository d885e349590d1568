#include "engine/data/cells/cell_number.h"

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/data/cells/spelling.h"
#include "engine/formats/tokenizer/utf8.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view stripped(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

char mark_of(DecimalMark mark) { return mark == DecimalMark::comma ? ',' : '.'; }
char mark_of(ThousandsMark mark) {
  constexpr char marks[] = {0, ',', '.', ' ', '_'};
  return marks[static_cast<std::size_t>(mark)];
}

/// The nearest double of a number that std::from_chars reports as out of range, which it does for
/// too small ones as for too large ones: 0 for 1e-400, infinity for 1e400.
double nearest(std::string_view number) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return ::strtod_l(std::string(number).c_str(), nullptr, plain);
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      value = nearest(text);
    } else if (error != std::errc() || !std::isfinite(value)) {
      return std::nullopt;
    }
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return value;
}

/// 1 for true and 0 for false; -1 for another word.
int truth_of(std::string_view text) {
  if (text == "True" || text == "true" || text == "TRUE") return 1;
  if (text == "False" || text == "false" || text == "FALSE") return 0;
  return -1;
}

/// "1,234,567": the first group has one to three digits, the others three.
bool has_groups(std::string_view digits, char mark) {
  std::size_t count = 0;
  bool is_first = true;
  for (const char c : digits) {
    if (is_digit(c)) {
      ++count;
    } else if (c != mark || count == 0 || count > 3 || (!is_first && count != 3)) {
      return false;
    } else {
      is_first = false;
      count = 0;
    }
  }
  return is_first || count == 3;
}

/// The text with a space in place of the no-break spaces that French and Swiss tables have between
/// thousands (U+00A0 and the narrow U+202F).
std::string with_plain_spaces(std::string_view text) {
  std::string plain(text);
  for (const std::string_view wide : {"\xc2\xa0", "\xe2\x80\xaf"}) {
    for (std::size_t at = plain.find(wide); at != std::string::npos; at = plain.find(wide, at + 1))
      plain.replace(at, wide.size(), " ");
  }
  return plain;
}

}  // namespace

bool is_usual_missing(std::string_view cell) {
  constexpr std::array<std::string_view, 13> words{
      "na", "n/a", "nan", "none", "null", "nil", "#n/a", "<na>", "-nan", "-", "--", "?", "."};
  constexpr std::size_t longest = 8;
  if (!cell.empty() && (is_digit(cell.front()) || is_digit(cell.back()))) return false;
  const std::string_view text = stripped(cell);
  if (text.empty()) return true;
  if (text.size() > longest) return false;
  return std::find(words.begin(), words.end(), lower_text(text)) != words.end();
}

std::optional<std::string_view> plain_number(std::string_view cell, const CellText& cells,
                                             std::string& buffer) {
  std::string_view text = trimmed(cell);
  std::string with_spaces;
  if (cells.thousands == ThousandsMark::space) {
    with_spaces = with_plain_spaces(text);
    text = with_spaces;
  }
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char decimal = mark_of(cells.decimal), thousands = mark_of(cells.thousands);
  if (decimal == '.' && thousands == 0) return text;
  const std::size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  std::size_t whole = sign;
  while (whole < text.size() && (is_digit(text[whole]) || text[whole] == thousands)) ++whole;
  if (thousands != 0 && !has_groups(text.substr(sign, whole - sign), thousands))
    return std::nullopt;
  buffer.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == decimal && decimal != '.' && i == whole) {
      buffer += '.';
    } else if (c == '.' && decimal != '.' && i >= whole) {
      return std::nullopt;
    } else if (i >= whole || c != thousands || thousands == 0) {
      buffer += c;
    }
  }
  return buffer;
}

std::optional<double> read_double(std::string_view cell, const CellText& cells,
                                  std::string& buffer) {
  const std::optional<std::string_view> text = plain_number(cell, cells, buffer);
  if (text) {
    if (const std::optional<double> value = number_in<double>(*text)) return value;
  }
  const int truth = truth_of(trimmed(cell));
  return truth < 0 ? std::nullopt : std::optional<double>(truth);
}

template <class T>
std::optional<T> read_whole(std::string_view cell, const CellText& cells, std::string& buffer) {
  const std::optional<std::string_view> text = plain_number(cell, cells, buffer);
  if (text) {
    if (const std::optional<T> value = number_in<T>(*text)) return value;
  }
  // Up to 2^53 doubles are the number that is written.
  constexpr double exact = 9007199254740992;
  const std::optional<double> value = read_double(cell, cells, buffer);
  if (!value || std::abs(*value) > exact || std::trunc(*value) != *value ||
      *value < static_cast<double>(std::numeric_limits<T>::min()) ||
      *value > static_cast<double>(std::numeric_limits<T>::max()))
    return std::nullopt;
  return static_cast<T>(*value);
}

template std::optional<std::int8_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::int16_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::int32_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::int64_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::uint8_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::uint16_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::uint32_t> read_whole(std::string_view, const CellText&, std::string&);
template std::optional<std::uint64_t> read_whole(std::string_view, const CellText&, std::string&);

std::string shown_cell(std::string_view text) {
  constexpr std::size_t most = 60, longest_character = 4;
  std::size_t cut = std::min(text.size(), most);
  const auto is_inside = [&] { return (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80; };
  const bool is_long = cut < text.size();
  while (is_long && cut > most - longest_character + 1 && is_inside()) --cut;
  return "\"" + printable(text.substr(0, cut)) + (is_long ? "…\"" : "\"");
}

}  // namespace tandem
