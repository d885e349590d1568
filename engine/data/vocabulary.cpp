#include "engine/data/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <unordered_map>

#include "engine/data/random.h"
#include "engine/formats/table_form.h"
#include "engine/graph/host_memory.h"

namespace tandem {
namespace {

std::uint64_t slot_hash(std::uint32_t column, std::string_view value) {
  return mix(std::hash<std::string_view>{}(value) + std::uint64_t{column} * 0x9e3779b97f4a7c15);
}

constexpr std::uint64_t fnv_prime = 1099511628211u;

std::uint64_t fnv(std::uint64_t state, std::string_view bytes) {
  for (const char c : bytes) state = (state ^ static_cast<unsigned char>(c)) * fnv_prime;
  return state;
}

void append_escaped(std::string& to, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '\t':
        to += "\\t";
        break;
      case '\n':
        to += "\\n";
        break;
      case '\r':
        to += "\\r";
        break;
      case '\\':
        to += "\\\\";
        break;
      default:
        to += c;
    }
  }
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
      continue;
    }
    const char c = ++i < text.size() ? text[i] : 0;
    if (c != 't' && c != 'n' && c != 'r' && c != '\\')
      throw std::invalid_argument("a backslash without t, n, r or \\");
    result += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : '\\';
  }
  return result;
}

constexpr std::string_view first_line = "column\tvalue\tcount";

}  // namespace

std::string_view ValueCounts::value(std::int64_t number) const {
  const auto i = static_cast<std::size_t>(number);
  const std::uint64_t from = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(text_).substr(from, ends_[i] - from);
}

std::size_t ValueCounts::slot_of(std::uint64_t hash, std::uint32_t column,
                                 std::string_view value) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const std::int32_t number = slots_[slot];
    if (number < 0) return slot;
    const auto i = static_cast<std::size_t>(number);
    if (hashes_[i] == hash && columns_[i] == column && this->value(number) == value) return slot;
  }
}

/// Large pieces of memory are looked for before they are taken.
void ValueCounts::expect_room(std::size_t bytes) const {
  constexpr std::size_t looked_for_from = std::size_t{16} << 20;
  if (bytes < looked_for_from) return;
  expect_memory(bytes,
                {.message = "the different values of a vocabulary need more memory than there is",
                 .got = std::to_string(size()) + " values of " + std::to_string(text_.size()) +
                        " bytes up to here, for which " + std::to_string(bytes) + " bytes more",
                 .fix = "use hash(n) instead of vocabulary, which keeps no values"});
}

void ValueCounts::grow() {
  constexpr std::size_t of_a_value =
      sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(std::int64_t) + sizeof(std::uint64_t);
  // Twice the slots, and the other lists of values: up to half as many as slots.
  expect_room(slots_.size() * (2 * sizeof(std::int32_t) + of_a_value));
  slots_.assign(std::max<std::size_t>(1024, 2 * slots_.size()), -1);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    std::size_t slot = hashes_[i] & mask;
    while (slots_[slot] >= 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::int32_t>(i);
  }
}

std::int32_t ValueCounts::find_or_add(std::uint32_t column, std::string_view value) {
  if (2 * (times_.size() + 1) > slots_.size()) grow();
  const std::uint64_t hash = slot_hash(column, value);
  std::int32_t& number = slots_[slot_of(hash, column, value)];
  if (number >= 0) return number;
  if (times_.size() >= 0x7fffffff) throw std::length_error("more than 2^31 - 1 values");
  if (text_.size() + value.size() > text_.capacity())
    expect_room(std::max(2 * text_.capacity(), text_.size() + value.size()));
  number = static_cast<std::int32_t>(times_.size());
  hashes_.push_back(hash);
  columns_.push_back(column);
  times_.push_back(0);
  text_ += value;
  ends_.push_back(text_.size());
  return number;
}

std::int32_t ValueCounts::find(std::uint32_t column, std::string_view value) const {
  if (slots_.empty()) return -1;
  return slots_[slot_of(slot_hash(column, value), column, value)];
}

Vocabulary::Vocabulary(const ValueCounts& all, std::int64_t least, std::vector<std::int32_t>& ids,
                       bool by_table) {
  std::vector<std::int32_t> order;
  for (std::int64_t i = 0; i < all.size(); ++i) {
    if (all.times(i) >= std::max<std::int64_t>(least, 1)) {
      order.push_back(static_cast<std::int32_t>(i));
    }
  }
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    if (all.times(a) != all.times(b)) return all.times(a) > all.times(b);
    if (all.column(a) != all.column(b)) return all.column(a) < all.column(b);
    return all.value(a) < all.value(b);
  });
  ids.assign(static_cast<std::size_t>(all.size()), 0);
  for (const std::int32_t number : order) {
    const std::int32_t place = values_.find_or_add(all.column(number), all.value(number));
    values_.count(place, all.times(number));
    ids[static_cast<std::size_t>(number)] = place + 1;
  }
  if (!by_table) return;
  number_by_table();
  for (std::int32_t& id : ids) {
    if (id > 0) id = own_[static_cast<std::size_t>(id - 1)];
  }
}

void Vocabulary::number_by_table() {
  std::map<std::uint32_t, std::int32_t> last;  // ids of each column so far
  own_.clear();
  for (std::int64_t i = 0; i < values_.size(); ++i) own_.push_back(++last[values_.column(i)]);
  for (const auto& [column, id] : last) own_rows_ = std::max<std::int64_t>(own_rows_, id + 1);
}

std::int64_t Vocabulary::greatest_id(std::uint32_t column) const {
  std::int64_t greatest = 0;
  for (std::int64_t i = 0; i < values_.size(); ++i) {
    if (values_.column(i) != column) continue;
    const std::int64_t own = own_.empty() ? i + 1 : own_[static_cast<std::size_t>(i)];
    greatest = std::max(greatest, own);
  }
  return greatest;
}

std::string_view Vocabulary::text_of(std::uint32_t column, std::int64_t id) const {
  for (std::int64_t i = 0; i < values_.size(); ++i) {
    const std::int64_t own = own_.empty() ? i + 1 : own_[static_cast<std::size_t>(i)];
    if (own == id && values_.column(i) == column) return values_.value(i);
  }
  return "";
}

std::string Vocabulary::text(const std::vector<std::string>& columns) const {
  std::string text(first_line);
  text += '\n';
  for (std::int64_t i = 0; i < values_.size(); ++i) {
    if (!columns.empty()) append_escaped(text, columns[values_.column(i)]);
    text += '\t';
    append_escaped(text, values_.value(i));
    text += '\t' + std::to_string(values_.times(i)) + '\n';
  }
  return text;
}

Vocabulary Vocabulary::parse(std::string_view text, const std::vector<std::string>& columns,
                             bool by_table) {
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    numbers.emplace(columns[i], static_cast<std::uint32_t>(i));
  }
  Vocabulary result;
  for (std::int64_t line = 0; !text.empty(); ++line) {
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument("line " + std::to_string(line + 1) + ": " + what);
    };
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) fail("the file is cut");
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line == 0) {
      if (row != first_line) fail("not a vocabulary");
      continue;
    }
    const std::size_t first = row.find('\t'), last = row.rfind('\t');
    if (first == std::string_view::npos || first == last) fail("not column, value and count");
    std::int64_t times = 0;
    const auto [stop, error] =
        std::from_chars(row.data() + last + 1, row.data() + row.size(), times);
    if (error != std::errc() || stop != row.data() + row.size() || times < 1) fail("no count");
    std::uint32_t column = 0;
    if (first > 0 && columns.empty()) fail("a value of one column, expected those of any column");
    if (first == 0 && !columns.empty()) fail("a value of any column, expected those of one column");
    if (first > 0) {
      const std::string name = unescaped(row.substr(0, first));
      const auto found = numbers.find(name);
      const std::size_t near = found == numbers.end() ? find_column(columns, name) : 0;
      if (near == std::string::npos) fail("no such column");
      column = found != numbers.end() ? found->second : static_cast<std::uint32_t>(near);
    }
    const std::string value = unescaped(row.substr(first + 1, last - first - 1));
    const std::int32_t place = result.values_.find_or_add(column, value);
    if (place != line - 1) fail("a value for the second time");
    result.values_.count(place, times);
  }
  if (by_table) result.number_by_table();
  return result;
}

std::string vocabulary_file_name(const std::string& name, const std::vector<std::string>& taken) {
  std::string safe;
  for (const char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '-' || c == '.';
    safe += plain ? c : '_';
  }
  std::string file = "vocabulary." + safe + ".tsv";
  for (int i = 2; std::find(taken.begin(), taken.end(), file) != taken.end(); ++i)
    file = "vocabulary." + safe + "-" + std::to_string(i) + ".tsv";
  return file;
}

ColumnHash::ColumnHash(std::string_view column)
    : start_(fnv(14695981039346656037u, column) * fnv_prime) {}

std::uint64_t ColumnHash::operator()(std::string_view value) const {
  std::uint64_t x = fnv(start_, value);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace tandem
