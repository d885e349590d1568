// Split: cut at a text or an expression.
#include "engine/formats/tokenizer/pre_tokenizers/split_behavior.h"

namespace tandem::pre_tokenizers {
namespace {

struct Split final : PreTokenizer {
  TextMatcher matcher;
  SplitBehavior behavior;
  bool inverts;

  explicit Split(const JsonItem& item)
      : matcher(item.at("pattern")),
        behavior(behavior_at(item, "Isolated")),
        inverts(flag(item, "invert", false)) {}

  void split(Words& words) const override {
    WordSplitter(words, behavior, inverts)
        .split([&](std::string_view word, std::vector<TextRange>& matches) {
          matcher.for_all(word, [&](const TextRange& match) { matches.push_back(match); });
        });
  }
};

}  // namespace

PartKind<PreTokenizer> split() {
  return {"Split", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Split>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
