// ByteLevel: says where tokens lie in the text, which nobody asks here.
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
