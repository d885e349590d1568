// StripAccents: removes marks (the category M), which NFD has separated before.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct StripAccents final : Normalizer {
  void normalize(std::string& text, bool& from_start) const override {
    std::string made;
    made.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      if (is_mark(next_character(text, at)))
        from_start = from_start && begin > 0;
      else
        made.append(text, begin, at - begin);
    }
    text.swap(made);
  }
};

}  // namespace

PartKind<Normalizer> strip_accents() {
  return {"StripAccents", [](const JsonItem&) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<StripAccents>();
          }};
}

}  // namespace tandem::normalizers
