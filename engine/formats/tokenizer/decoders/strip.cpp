// Strip: up to a number of one character at the ends of every token.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct StripText final : TokenDecoder {
  std::string character;
  std::uint64_t start, stop;

  explicit StripText(const JsonItem& item)
      : character(character_at(item, "content", "")),
        start(item.at("start").natural(0, 1 << 20)),
        stop(item.at("stop").natural(0, 1 << 20)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (std::uint64_t i = 0; i < start && token.starts_with(character); ++i)
        token.erase(0, character.size());
      for (std::uint64_t i = 0; i < stop && token.ends_with(character); ++i)
        token.resize(token.size() - character.size());
    }
  }
};

}  // namespace

PartKind<TokenDecoder> strip() {
  return {"Strip", [](const JsonItem& item) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<StripText>(item);
          }};
}

}  // namespace tandem::token_decoders
