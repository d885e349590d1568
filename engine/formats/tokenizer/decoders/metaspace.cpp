// Metaspace: the character in place of spaces becomes a space, or nothing where the text begins
// with it.
#include "engine/formats/tokenizer/metaspace.h"
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct MetaspaceText final : TokenDecoder {
  MetaspaceSettings settings;

  explicit MetaspaceText(const JsonItem& item) : settings(read_metaspace(item)) {}

  void decode(std::vector<std::string>& tokens) const override {
    const bool drops = settings.prepend != MetaspaceSettings::Prepend::never;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::vector<TextRange> found;
      find_all_of(tokens[i], settings.character, found);
      std::string made;
      std::size_t at = 0;
      for (const TextRange& range : found) {
        made.append(tokens[i], at, range.begin - at);
        if (i > 0 || !drops) made += " ";
        at = range.end;
      }
      made.append(tokens[i], at);
      tokens[i].swap(made);
    }
  }
};

}  // namespace

PartKind<TokenDecoder> metaspace() {
  return {"Metaspace", [](const JsonItem& item) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<MetaspaceText>(item);
          }};
}

}  // namespace tandem::token_decoders
