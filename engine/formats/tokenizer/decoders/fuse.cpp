// Fuse: all tokens as one text.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct Fuse final : TokenDecoder {
  void decode(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  }
};

}  // namespace

PartKind<TokenDecoder> fuse() {
  return {"Fuse", [](const JsonItem&) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<Fuse>();
          }};
}

}  // namespace tandem::token_decoders
