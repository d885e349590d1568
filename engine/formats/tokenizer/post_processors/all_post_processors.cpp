// The list of post-processors: NAME.cpp has post_processors::NAME().
#include "engine/formats/tokenizer/parts.h"

// clang-format off: one a line
#define TANDEM_POST_PROCESSORS(PART) \
  PART(template_processing)          \
  PART(bert)                         \
  PART(roberta)                      \
  PART(byte_level)                   \
  PART(sequence)
// clang-format on

namespace tandem {
namespace post_processors {
#define DECLARE_PART(name) PartKind<PostProcessor> name();
TANDEM_POST_PROCESSORS(DECLARE_PART)
#undef DECLARE_PART
}  // namespace post_processors

std::span<const PartKind<PostProcessor>> all_post_processors() {
#define LIST_PART(name) post_processors::name(),
  static const std::vector<PartKind<PostProcessor>> list{TANDEM_POST_PROCESSORS(LIST_PART)};
#undef LIST_PART
  return list;
}

}  // namespace tandem
