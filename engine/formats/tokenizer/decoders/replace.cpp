// Replace: every match of a text or an expression becomes another text.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

struct ReplaceText final : TokenDecoder {
  TextMatcher matcher;
  std::string content;

  explicit ReplaceText(const JsonItem& item)
      : matcher(item.at("pattern")), content(item.at("content").any_text()) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) replace_matches(matcher, content, token);
  }
};

}  // namespace

PartKind<TokenDecoder> replace() {
  return {"Replace", [](const JsonItem& item) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<ReplaceText>(item);
          }};
}

}  // namespace tandem::token_decoders
