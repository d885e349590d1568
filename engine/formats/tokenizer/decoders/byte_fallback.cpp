// ByteFallback: tokens of single bytes become characters; bytes that form none become U+FFFD each.
#include "engine/formats/tokenizer/byte_letters.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct ByteFallback final : TokenDecoder {
  void decode(std::vector<std::string>& tokens) const override {
    std::vector<std::string> made;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (invalid_utf8(bytes) == std::string::npos) {
        made.push_back(bytes);
      } else {
        for (std::size_t i = 0; i < bytes.size(); ++i) made.emplace_back("\xef\xbf\xbd");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = byte_of_token(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      made.push_back(std::move(token));
    }
    flush();
    tokens.swap(made);
  }
};

}  // namespace

PartKind<TokenDecoder> byte_fallback() {
  return {"ByteFallback", [](const JsonItem&) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<ByteFallback>();
          }};
}

}  // namespace tandem::token_decoders
