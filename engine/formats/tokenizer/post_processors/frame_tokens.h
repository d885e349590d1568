// What post-processors have in common: the one frame that a tokenizer puts around texts.
#pragma once

#include <stdexcept>

#include "engine/formats/tokenizer/parts.h"

namespace tandem::post_processors {

/// Refuses a second frame: its place would be a guess.
struct Framing : PostProcessor {
  TokenFrame own;

  void add(TokenFrame& frame) const override {
    if (frame.is_set) throw std::invalid_argument("two post-processors put tokens around a text");
    frame = own;
    frame.is_set = true;
  }
};

inline std::uint32_t token_id_at(const JsonItem& item) {
  return static_cast<std::uint32_t>(item.natural(0, TokenTable::most_ids - 1));
}
/// [ "[CLS]", 101 ]
inline TokenFrame::Token token_pair_at(const JsonItem& item, std::string_view key) {
  const std::vector<JsonItem> both = item.at(key).list();
  if (both.size() != 2) item.at(key).refuse("not a token and its id", "[ token, id ]");
  return {token_id_at(both[1]), 0};
}

}  // namespace tandem::post_processors
