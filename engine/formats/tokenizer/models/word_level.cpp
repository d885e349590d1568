// WordLevel: a word is a token, or unknown.
#include <stdexcept>

#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_models {
namespace {

class WordLevel final : public TokenModel {
 public:
  explicit WordLevel(const JsonItem& item) {
    tokens_.read(item.at("vocab"));
    unknown_ = tokens_.find(text_at(item, "unk_token", "<unk>"));
  }

  const TokenTable& tokens() const override { return tokens_; }
  std::optional<std::uint32_t> unknown() const override { return unknown_; }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids,
              ModelScratch&) const override {
    const auto found = tokens_.find(word);
    if (!found && !unknown_)
      throw std::invalid_argument("a word is not in the vocabulary, which has no unknown token");
    ids.push_back(found ? *found : *unknown_);
  }

 private:
  TokenTable tokens_;
  std::optional<std::uint32_t> unknown_;
};

}  // namespace

PartKind<TokenModel> word_level() {
  return {"WordLevel", [](const JsonItem& item) -> std::unique_ptr<const TokenModel> {
            return std::make_unique<WordLevel>(item);
          }};
}

}  // namespace tandem::token_models
