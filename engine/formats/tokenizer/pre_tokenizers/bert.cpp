// BertPreTokenizer: words between white space, every punctuation mark by itself.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::pre_tokenizers {
namespace {

struct Bert final : PreTokenizer {
  void split(Words& words) const override {
    WordSplitter(words, SplitBehavior::removed).split_characters(is_white_space);
    WordSplitter(words, SplitBehavior::isolated).split_characters(is_punctuation);
  }
};

}  // namespace

PartKind<PreTokenizer> bert() {
  return {"BertPreTokenizer", [](const JsonItem&) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Bert>();
          }};
}

}  // namespace tandem::pre_tokenizers
