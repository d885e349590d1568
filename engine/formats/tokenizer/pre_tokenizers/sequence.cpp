// Sequence: one pre-tokenizer after the other.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::pre_tokenizers {
namespace {

struct Sequence final : PreTokenizer {
  std::vector<std::unique_ptr<const PreTokenizer>> parts;

  explicit Sequence(const JsonItem& item) {
    for (const JsonItem& part : item.at("pretokenizers").list())
      parts.push_back(read_pre_tokenizer(part));
  }

  void split(Words& words) const override {
    for (const auto& part : parts) {
      part->split(words);
      check_size(words.text);
    }
  }
};

}  // namespace

PartKind<PreTokenizer> sequence() {
  return {"Sequence", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Sequence>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
