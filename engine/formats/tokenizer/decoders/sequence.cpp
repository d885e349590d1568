// Sequence: one decoder after the other.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct Sequence final : TokenDecoder {
  std::vector<std::unique_ptr<const TokenDecoder>> parts;

  explicit Sequence(const JsonItem& item) {
    for (const JsonItem& part : item.at("decoders").list())
      parts.push_back(read_token_decoder(part));
  }

  void decode(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts) part->decode(tokens);
  }
};

}  // namespace

PartKind<TokenDecoder> sequence() {
  return {"Sequence", [](const JsonItem& item) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<Sequence>(item);
          }};
}

}  // namespace tandem::token_decoders
