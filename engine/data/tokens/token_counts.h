// How long texts are in tokens, and what of them samples hold: for `tandem data check`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct TokenCounts {
  struct LongText {
    std::string place;  // "chat.jsonl:17"
    std::int64_t tokens = 0;
  };
  static constexpr std::size_t most_longest = 5;

  std::int64_t texts = 0, tokens = 0;  // what was left out is not counted
  std::int64_t left_out = 0;           // texts
  std::int64_t cut_texts = 0, cut_tokens = 0;
  std::int64_t learned = 0;              // tokens that are targets
  std::int64_t samples = 0, places = 0;  // places: samples times their length
  std::vector<LongText> longest;         // the longest one first

  std::int64_t kept() const { return tokens - cut_tokens; }
  void add_long(std::string place, std::int64_t length);
};

}  // namespace tandem
