// The list of pre-tokenizers: NAME.cpp has pre_tokenizers::NAME().
#include "engine/formats/tokenizer/parts.h"

// clang-format off: one a line
#define TANDEM_PRE_TOKENIZERS(PART) \
  PART(whitespace)                  \
  PART(whitespace_split)            \
  PART(bert)                        \
  PART(byte_level)                  \
  PART(digits)                      \
  PART(punctuation)                 \
  PART(metaspace)                   \
  PART(split)                       \
  PART(delimiter)                   \
  PART(sequence)
// clang-format on

namespace tandem {
namespace pre_tokenizers {
#define DECLARE_PART(name) PartKind<PreTokenizer> name();
TANDEM_PRE_TOKENIZERS(DECLARE_PART)
#undef DECLARE_PART
}  // namespace pre_tokenizers

std::span<const PartKind<PreTokenizer>> all_pre_tokenizers() {
#define LIST_PART(name) pre_tokenizers::name(),
  static const std::vector<PartKind<PreTokenizer>> list{TANDEM_PRE_TOKENIZERS(LIST_PART)};
#undef LIST_PART
  return list;
}

}  // namespace tandem
