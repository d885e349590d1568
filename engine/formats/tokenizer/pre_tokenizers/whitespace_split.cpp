// WhitespaceSplit: words are what stands between white space.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::pre_tokenizers {
namespace {

struct WhitespaceSplit final : PreTokenizer {
  void split(Words& words) const override {
    WordSplitter(words, SplitBehavior::removed).split_characters(is_white_space);
  }
};

}  // namespace

PartKind<PreTokenizer> whitespace_split() {
  return {"WhitespaceSplit", [](const JsonItem&) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<WhitespaceSplit>();
          }};
}

}  // namespace tandem::pre_tokenizers
