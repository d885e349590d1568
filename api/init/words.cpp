// Texts of columns: the words that `classes(…)` can list, and texts that occur among numbers.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/init/data/data_look.h"
#include "api/init/draft.h"
#include "api/init/fields.h"
#include "engine/data/functions/call.h"
#include "engine/formats/tokenizer/utf8.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

/// Whether a character controls a terminal. Words are printed in tables, where only line breaks and
/// tabs are allowed.
bool steers_terminal(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
}

/// Why `classes(…)` cannot list a word; "" where it can.
std::string refusal_of_word(const std::string& word) {
  constexpr std::size_t most_bytes = 200;
  const bool has_both_quotes =
      word.find('\'') != std::string::npos && word.find('"') != std::string::npos;
  if (word.empty()) return "is empty";
  if (std::any_of(word.begin(), word.end(), steers_terminal)) return "holds control characters";
  if (!is_text(word)) return "is not UTF-8, as train.toml has to be";
  if (word.size() > most_bytes) return fmt::format("is longer than {} bytes", most_bytes);
  if (has_both_quotes) return "holds both kinds of quotes";
  return "";
}

}  // namespace

std::string classes_function(const std::vector<std::string>& words) {
  const bool are_listed = std::all_of(words.begin(), words.end(), [](const std::string& word) {
    return refusal_of_word(word).empty();
  });
  return words.size() >= 2 && are_listed ? call_text("classes", words) : "";
}

std::vector<std::string> words_of(const ArrayFacts& array) {
  const bool is_column = !array.stacked && array.sample.shape.empty();
  return is_column ? array.words : std::vector<std::string>();
}

std::string unlisted_word(const ArrayFacts& array) {
  for (const std::string& word : words_of(array)) {
    const std::string why = word.empty() ? "" : refusal_of_word(word);
    if (!why.empty()) return shown_text(word) + " " + why;
  }
  return "";
}

std::string shown_text(std::string_view text) {
  constexpr std::size_t most = 40;
  const auto is_inside = [&](std::size_t i) {  // a continuation byte of UTF-8
    return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
  };
  std::size_t end = std::min(text.size(), most);
  const bool is_cut = end < text.size();
  while (is_cut && end > 0 && is_inside(end)) --end;
  return "\"" + on_one_line(with_replacements(text.substr(0, end))) + (is_cut ? "…\"" : "\"");
}

bool mixes_text(const ArrayFacts& array) {
  return !array.first_text.empty() && array.numbers.count > 0;
}

std::string texts_among_numbers(const std::vector<const ArrayFacts*>& arrays) {
  constexpr std::size_t most = 5;
  std::string text;
  std::size_t count = 0;
  for (const ArrayFacts* array : arrays) {
    if (!mixes_text(*array) || ++count > most) continue;
    text += fmt::format("; \"{}\" holds {}", array->name, array->first_text);
  }
  if (count > most) text += fmt::format(", and {} more columns hold texts", count - most);
  return text;
}

std::string passed_over_for_text(const InputFacts& input,
                                 const std::vector<const ArrayFacts*>& arrays) {
  InputFacts element = input;
  element.sample.shape.clear();
  std::vector<const ArrayFacts*> columns;
  std::copy_if(arrays.begin(), arrays.end(), std::back_inserter(columns),
               [&](const ArrayFacts* array) {
                 return !array->is_label && !misfit(element, *array).empty();
               });
  std::string text = texts_among_numbers(columns);
  if (!text.empty() && is_float(input.sample.dtype))
    text += " (an empty field would be filled, a text is not)";
  return text;
}

}  // namespace tandem::api
