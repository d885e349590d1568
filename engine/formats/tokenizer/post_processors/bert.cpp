// BertProcessing: the token `cls` before a text, `sep` after it.
#include "engine/formats/tokenizer/post_processors/frame_tokens.h"

namespace tandem::post_processors {
namespace {

struct BertFrame final : Framing {
  explicit BertFrame(const JsonItem& item) {
    own.before = {token_pair_at(item, "cls")};
    own.behind = {token_pair_at(item, "sep")};
  }
};

}  // namespace

PartKind<PostProcessor> bert() {
  return {"BertProcessing", [](const JsonItem& item) -> std::unique_ptr<const PostProcessor> {
            return std::make_unique<BertFrame>(item);
          }};
}

}  // namespace tandem::post_processors
