// Whitespace: words of \w+ and of [^\w\s]+; white space is dropped.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::pre_tokenizers {
namespace {

struct Whitespace final : PreTokenizer {
  void split(Words& words) const override {
    WordSplitter(words, SplitBehavior::removed).split_characters(is_white_space);
    WordSplitter(words, SplitBehavior::contiguous).split_characters(is_word_character);
  }
};

}  // namespace

PartKind<PreTokenizer> whitespace() {
  return {"Whitespace", [](const JsonItem&) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Whitespace>();
          }};
}

}  // namespace tandem::pre_tokenizers
