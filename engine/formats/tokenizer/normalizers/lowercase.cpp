// Lowercase: character by character.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct Lowercase final : Normalizer {
  void normalize(std::string& text, bool&) const override {
    std::string made;
    made.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) append_lower(made, next_character(text, at));
    text.swap(made);
  }
};

}  // namespace

PartKind<Normalizer> lowercase() {
  return {"Lowercase", [](const JsonItem&) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<Lowercase>();
          }};
}

}  // namespace tandem::normalizers
