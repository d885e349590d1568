// CharDelimiterSplit: words are what stands between one character.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::pre_tokenizers {
namespace {

struct Delimiter final : PreTokenizer {
  std::string character;

  explicit Delimiter(const JsonItem& item) : character(character_at(item, "delimiter", "")) {}

  void split(Words& words) const override {
    WordSplitter(words, SplitBehavior::removed)
        .split([&](std::string_view word, std::vector<TextRange>& matches) {
          find_all_of(word, character, matches);
        });
  }
};

}  // namespace

PartKind<PreTokenizer> delimiter() {
  return {"CharDelimiterSplit", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Delimiter>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
