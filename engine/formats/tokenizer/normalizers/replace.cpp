// Replace: every match of a text or an expression becomes another text.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::normalizers {
namespace {

struct Replace final : Normalizer {
  TextMatcher matcher;
  std::string content;

  explicit Replace(const JsonItem& item)
      : matcher(item.at("pattern")), content(item.at("content").any_text()) {}

  void normalize(std::string& text, bool&) const override {
    replace_matches(matcher, content, text);
  }
};

}  // namespace

PartKind<Normalizer> replace() {
  return {"Replace", [](const JsonItem& item) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<Replace>(item);
          }};
}

}  // namespace tandem::normalizers
