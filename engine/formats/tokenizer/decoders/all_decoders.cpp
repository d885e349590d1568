// The list of decoders: NAME.cpp has token_decoders::NAME().
#include "engine/formats/tokenizer/parts.h"

// clang-format off: one a line
#define TANDEM_TOKEN_DECODERS(PART) \
  PART(byte_level)                  \
  PART(word_piece)                  \
  PART(metaspace)                   \
  PART(byte_fallback)               \
  PART(fuse)                        \
  PART(strip)                       \
  PART(replace)                     \
  PART(bpe_decoder)                 \
  PART(sequence)
// clang-format on

namespace tandem {
namespace token_decoders {
#define DECLARE_PART(name) PartKind<TokenDecoder> name();
TANDEM_TOKEN_DECODERS(DECLARE_PART)
#undef DECLARE_PART
}  // namespace token_decoders

std::span<const PartKind<TokenDecoder>> all_token_decoders() {
#define LIST_PART(name) token_decoders::name(),
  static const std::vector<PartKind<TokenDecoder>> list{TANDEM_TOKEN_DECODERS(LIST_PART)};
#undef LIST_PART
  return list;
}

}  // namespace tandem
