// The list of normalizers: NAME.cpp has normalizers::NAME().
#include "engine/formats/tokenizer/parts.h"

// clang-format off: one a line
#define TANDEM_NORMALIZERS(PART) \
  PART(nfc)                      \
  PART(nfd)                      \
  PART(nfkc)                     \
  PART(nfkd)                     \
  PART(lowercase)                \
  PART(strip_accents)            \
  PART(strip)                    \
  PART(replace)                  \
  PART(prepend)                  \
  PART(bert)                     \
  PART(sequence)
// clang-format on

namespace tandem {
namespace normalizers {
#define DECLARE_PART(name) PartKind<Normalizer> name();
TANDEM_NORMALIZERS(DECLARE_PART)
#undef DECLARE_PART
}  // namespace normalizers

std::span<const PartKind<Normalizer>> all_normalizers() {
#define LIST_PART(name) normalizers::name(),
  static const std::vector<PartKind<Normalizer>> list{TANDEM_NORMALIZERS(LIST_PART)};
#undef LIST_PART
  return list;
}

}  // namespace tandem
