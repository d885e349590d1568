// WordPiece: the longest token that a word begins with, then the longest of the rest. No more of a
// word is tried than the longest token has, so that its time is linear in the word.
#include <algorithm>

#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_models {
namespace {

class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const JsonItem& item)
      : prefix_(text_at(item, "continuing_subword_prefix", "##")) {
    most_characters_ = 100;
    if (const auto most = find_set(item, "max_input_chars_per_word"))
      most_characters_ = most->natural(0, 1 << 16);
    tokens_.read(item.at("vocab"));
    for (std::uint32_t token = 0; token < tokens_.size(); ++token) {
      if (const std::string* text = tokens_.token(token))
        longest_ = std::max(longest_, text->size());
    }
    const std::string unknown = text_at(item, "unk_token", "[UNK]");
    const auto id = tokens_.find(unknown);
    if (!id) item.refuse("the unknown token \"" + unknown + "\" is not in the vocabulary");
    unknown_ = *id;
  }

  const TokenTable& tokens() const override { return tokens_; }
  std::optional<std::uint32_t> unknown() const override { return unknown_; }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids,
              ModelScratch& scratch) const override {
    std::uint64_t characters = 0;
    for (std::size_t at = 0; at < word.size(); ++characters) at += character_bytes(word[at]);
    if (characters > most_characters_) return ids.push_back(unknown_);
    const std::size_t before = ids.size();
    for (std::size_t begin = 0; begin < word.size();) {
      scratch.text = begin > 0 ? prefix_ : "";
      const std::size_t prefix = scratch.text.size();
      scratch.text += word.substr(begin, longest_ + 1);
      std::string_view rest = scratch.text;
      std::optional<std::uint32_t> found;
      while (rest.size() > prefix && !(found = tokens_.find(rest))) {
        do {
          rest.remove_suffix(1);  // a character
        } while (rest.size() > prefix &&
                 (static_cast<unsigned char>(scratch.text[rest.size()]) & 0xc0) == 0x80);
      }
      if (!found) {
        ids.resize(before);
        return ids.push_back(unknown_);
      }
      ids.push_back(*found);
      begin += rest.size() - prefix;
    }
  }

 private:
  TokenTable tokens_;
  std::string prefix_;
  std::uint64_t most_characters_;
  std::size_t longest_ = 0;  // bytes of a token
  std::uint32_t unknown_ = 0;
};

}  // namespace

PartKind<TokenModel> word_piece() {
  return {"WordPiece", [](const JsonItem& item) -> std::unique_ptr<const TokenModel> {
            return std::make_unique<WordPiece>(item);
          }};
}

}  // namespace tandem::token_models
