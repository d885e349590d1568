// Punctuation: cut at punctuation marks.
#include "engine/formats/tokenizer/pre_tokenizers/split_behavior.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::pre_tokenizers {
namespace {

struct Punctuation final : PreTokenizer {
  SplitBehavior behavior;

  explicit Punctuation(const JsonItem& item) : behavior(behavior_at(item, "Isolated")) {}

  void split(Words& words) const override {
    WordSplitter(words, behavior).split_characters(is_punctuation);
  }
};

}  // namespace

PartKind<PreTokenizer> punctuation() {
  return {"Punctuation", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Punctuation>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
