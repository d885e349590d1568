// Metaspace: spaces become a visible character that begins words, as SentencePiece has them.
#include "engine/formats/tokenizer/metaspace.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::pre_tokenizers {
namespace {

struct Metaspace final : PreTokenizer {
  MetaspaceSettings settings;
  bool splits;

  explicit Metaspace(const JsonItem& item)
      : settings(read_metaspace(item)), splits(flag(item, "split", true)) {}

  void split(Words& words) const override {
    std::string text;
    text.reserve(words.text.size() * 2);
    for (TextRange& range : words.ranges) {
      const std::size_t begin = text.size();
      const std::string_view word = words.word(range);
      const bool begins_so = word[0] == ' ' || word.starts_with(settings.character);
      const bool prepends =
          settings.prepend == MetaspaceSettings::Prepend::always ||
          (settings.prepend == MetaspaceSettings::Prepend::first && words.starts_input(range));
      if (prepends && !begins_so) text += settings.character;
      for (const char c : word) {
        if (c == ' ')
          text += settings.character;
        else
          text += c;
      }
      range = {begin, text.size()};
    }
    words.text.swap(text);
    if (!splits) return;
    WordSplitter(words, SplitBehavior::merged_with_next)
        .split([&](std::string_view word, std::vector<TextRange>& matches) {
          find_all_of(word, settings.character, matches);
        });
  }
};

}  // namespace

PartKind<PreTokenizer> metaspace() {
  return {"Metaspace", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Metaspace>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
