// ByteLevel: reports where tokens are in the text, which is not used here.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::post_processors {
namespace {

struct ByteLevelPlaces final : PostProcessor {
  void add(TokenFrame&) const override {}
};

}  // namespace

PartKind<PostProcessor> byte_level() {
  return {"ByteLevel", [](const JsonItem&) -> std::unique_ptr<const PostProcessor> {
            return std::make_unique<ByteLevelPlaces>();
          }};
}

}  // namespace tandem::post_processors
