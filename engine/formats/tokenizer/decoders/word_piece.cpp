// WordPiece: a token that continues a word follows it directly, other tokens follow a space.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::token_decoders {
namespace {

void replace_text(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Removes spaces in front of marks and shortened words, which come from cutting there.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> pairs[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : pairs) replace_text(text, from, to);
}

struct WordPieces final : TokenDecoder {
  std::string prefix;
  bool cleans;

  explicit WordPieces(const JsonItem& item)
      : prefix(text_at(item, "prefix", "##")), cleans(flag(item, "cleanup", true)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        if (tokens[i].starts_with(prefix))
          tokens[i].erase(0, prefix.size());
        else
          tokens[i].insert(0, " ");
      }
      if (cleans) clean_up(tokens[i]);
    }
  }
};

}  // namespace

PartKind<TokenDecoder> word_piece() {
  return {"WordPiece", [](const JsonItem& item) -> std::unique_ptr<const TokenDecoder> {
            return std::make_unique<WordPieces>(item);
          }};
}

}  // namespace tandem::token_decoders
