// BPEDecoder: the suffix that ends words becomes a space, but for the last one.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct WordEnds final : TokenDecoder {
  std::string suffix;

  explicit WordEnds(const JsonItem& item) : suffix(text_at(item, "suffix", "</w>")) {}

  void decode(std::vector<std::string>& tokens) const override {
    if (suffix.empty()) return;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string to = i + 1 == tokens.size() ? "" : " ";
      for (std::size_t at = 0; (at = tokens[i].find(suffix, at)) != std::string::npos;
           at += to.size())
        tokens[i].replace(at, suffix.size(), to);
    }
  }
};

}  // namespace

PartKind<TokenDecoder> bpe_decoder() {
  return {"BPEDecoder", [](const JsonItem& item) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<WordEnds>(item);
          }};
}

}  // namespace tandem::token_decoders
