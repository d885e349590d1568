// A text on its way to tokens: normalized, and cut into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/tokenizer/pattern.h"

namespace tandem {

struct Words {
  std::string text;
  std::vector<TextRange> ranges;  // in order, none of them empty
  /// The first character is the first one of the input, or comes from it.
  bool from_start = false;

  std::string_view word(const TextRange& range) const {
    return std::string_view(text).substr(range.begin, range.end - range.begin);
  }
  /// Whether a word begins where the input does.
  bool starts_input(const TextRange& range) const { return from_start && range.begin == 0; }
};

/// What becomes of the parts of a word that match.
enum class SplitBehavior : std::uint8_t {
  removed,
  isolated,              // words of their own
  merged_with_previous,  // they end the word before
  merged_with_next,      // they begin the word after
  contiguous             // matches that touch are one word
};

/// Cuts words where something matches.
class WordSplitter {
 public:
  /// `inverts`: what lies between matches is meant.
  WordSplitter(Words& words, SplitBehavior behavior, bool inverts = false)
      : words_(words), behavior_(behavior), inverts_(inverts) {}

  /// `find`: f(word, matches) appends ranges of the word, in order.
  template <class Find>
  void split(Find find) {
    std::vector<TextRange> cut;
    cut.swap(words_.ranges);
    for (const TextRange& range : cut) {
      matches_.clear();
      find(words_.word(range), matches_);
      take(range);
    }
  }
  /// Each character that `matches` is a match.
  template <class Matches>
  void split_characters(Matches matches);

 private:
  struct Part {
    TextRange range;
    bool matches;
  };
  void take(const TextRange& word);

  Words& words_;
  const SplitBehavior behavior_;
  const bool inverts_;
  std::vector<TextRange> matches_;
  std::vector<Part> parts_;
};

}  // namespace tandem

#include "engine/formats/tokenizer/utf8.h"

namespace tandem {

template <class Matches>
void WordSplitter::split_characters(Matches matches) {
  split([&](std::string_view word, std::vector<TextRange>& found) {
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t begin = at;
      if (matches(next_character(word, at))) found.push_back({begin, at});
    }
  });
}

}  // namespace tandem
