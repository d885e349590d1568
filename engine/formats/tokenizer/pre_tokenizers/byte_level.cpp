// ByteLevel: words by GPT-2's expression, in letters that represent bytes.
#include "engine/formats/tokenizer/byte_letters.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::pre_tokenizers {
namespace {

constexpr const char* gpt2_words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct ByteLevel final : PreTokenizer {
  bool adds_space;
  std::unique_ptr<const Pattern> pattern;  // null: words stay whole

  explicit ByteLevel(const JsonItem& item) : adds_space(flag(item, "add_prefix_space", true)) {
    if (flag(item, "use_regex", true)) pattern = std::make_unique<Pattern>(gpt2_words);
  }

  void split(Words& words) const override {
    if (adds_space) put_space(words);
    if (pattern) {
      WordSplitter(words, SplitBehavior::isolated)
          .split([&](std::string_view word, std::vector<TextRange>& matches) {
            pattern->for_all(word, [&](const TextRange& match) { matches.push_back(match); });
          });
    }
    std::string letters;
    letters.reserve(words.text.size() * 2);
    for (TextRange& range : words.ranges) {
      const std::size_t begin = letters.size();
      for (const char byte : words.word(range))
        append_byte_letter(letters, static_cast<unsigned char>(byte));
      range = {begin, letters.size()};
    }
    words.text.swap(letters);
  }

 private:
  /// Puts a space in front of every word that does not begin with one.
  static void put_space(Words& words) {
    std::string text;
    text.reserve(words.text.size() + words.ranges.size());
    for (TextRange& range : words.ranges) {
      const std::string_view word = words.word(range);
      const std::size_t begin = text.size();
      if (word[0] != ' ') text += ' ';
      text += word;
      range = {begin, text.size()};
    }
    words.text.swap(text);
  }
};

}  // namespace

PartKind<PreTokenizer> byte_level() {
  return {"ByteLevel", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<ByteLevel>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
