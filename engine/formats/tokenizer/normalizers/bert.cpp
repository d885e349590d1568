// BertNormalizer: without control characters, Chinese characters between spaces, without accents,
// in lower case.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c < 0x80) return c < 0x20 || c == 0x7f;
  const std::string_view of = category(c);
  return of == "Cc" || of == "Cf" || of == "Co" || of == "Cs";
}

bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b81f) ||
         (c >= 0x2b920 && c <= 0x2ceaf) || (c >= 0xf900 && c <= 0xfaff) ||
         (c >= 0x2f800 && c <= 0x2fa1f);
}

struct Bert final : Normalizer {
  bool cleans, spaces_chinese, strips_accents, lowers;

  explicit Bert(const JsonItem& item)
      : cleans(flag(item, "clean_text", true)),
        spaces_chinese(flag(item, "handle_chinese_chars", true)),
        lowers(flag(item, "lowercase", true)) {
    strips_accents = flag(item, "strip_accents", lowers);
  }

  void normalize(std::string& text, bool& from_start) const override {
    std::string made;
    made.reserve(text.size() + text.size() / 8);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_character(text, at);
      if (cleans && (c == 0 || c == 0xfffd || is_control(c))) {
        from_start = from_start && begin > 0;
      } else if (cleans && is_white_space(c)) {
        made += ' ';
      } else if (spaces_chinese && is_chinese(c)) {
        made += ' ';
        append_character(made, c);
        made += ' ';
      } else {
        made.append(text, begin, at - begin);
      }
    }
    text.swap(made);
    if (strips_accents) {
      const std::string apart = normalized(text, UnicodeForm::nfd);
      text.clear();
      for (std::size_t at = 0; at < apart.size();) {
        const std::size_t begin = at;
        if (!is_nonspacing_mark(next_character(apart, at))) text.append(apart, begin, at - begin);
      }
    }
    if (!lowers) return;
    made.clear();
    for (std::size_t at = 0; at < text.size();) append_lower(made, next_character(text, at));
    text.swap(made);
  }
};

}  // namespace

PartKind<Normalizer> bert() {
  return {"BertNormalizer", [](const JsonItem& item) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<Bert>(item);
          }};
}

}  // namespace tandem::normalizers
