// The list of models: NAME.cpp has token_models::NAME().
#include "engine/formats/tokenizer/parts.h"

// clang-format off: one a line
#define TANDEM_TOKEN_MODELS(PART) \
  PART(bpe)                       \
  PART(word_piece)                \
  PART(unigram)                   \
  PART(word_level)
// clang-format on

namespace tandem {
namespace token_models {
#define DECLARE_PART(name) PartKind<TokenModel> name();
TANDEM_TOKEN_MODELS(DECLARE_PART)
#undef DECLARE_PART
}  // namespace token_models

std::span<const PartKind<TokenModel>> all_token_models() {
#define LIST_PART(name) token_models::name(),
  static const std::vector<PartKind<TokenModel>> list{TANDEM_TOKEN_MODELS(LIST_PART)};
#undef LIST_PART
  return list;
}

}  // namespace tandem
