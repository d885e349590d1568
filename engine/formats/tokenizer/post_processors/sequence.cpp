// Sequence: one post-processor after the other.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::post_processors {
namespace {

struct Sequence final : PostProcessor {
  std::vector<std::unique_ptr<const PostProcessor>> parts;

  explicit Sequence(const JsonItem& item) {
    for (const JsonItem& part : item.at("processors").list())
      parts.push_back(read_post_processor(part));
  }

  void add(TokenFrame& frame) const override {
    for (const auto& part : parts) part->add(frame);
  }
};

}  // namespace

PartKind<PostProcessor> sequence() {
  return {"Sequence", [](const JsonItem& item) -> std::unique_ptr<const PostProcessor> {
            return std::make_unique<Sequence>(item);
          }};
}

}  // namespace tandem::post_processors
