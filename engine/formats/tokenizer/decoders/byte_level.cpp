// ByteLevel: letters that represent bytes become those bytes; what is then no UTF-8 becomes U+FFFD.
#include "engine/formats/tokenizer/byte_letters.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

/// The bytes of a token; the token itself where one of its characters represents none.
std::string bytes_of_letters(const std::string& token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const int byte = byte_of_letter(next_character(token, at));
    if (byte < 0) return token;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

struct ByteLetters final : TokenDecoder {
  void decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of_letters(token);
    tokens = {with_replacements(bytes)};
  }
};

}  // namespace

PartKind<TokenDecoder> byte_level() {
  return {"ByteLevel", [](const JsonItem&) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<ByteLetters>();
          }};
}

}  // namespace tandem::token_decoders
