// Strip: removes white space at one end or both.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct Strip final : Normalizer {
  bool left = true, right = true;

  explicit Strip(const JsonItem& item)
      : left(flag(item, "strip_left", true)), right(flag(item, "strip_right", true)) {}

  void normalize(std::string& text, bool& from_start) const override {
    std::size_t begin = 0, end = text.size();
    for (std::size_t at = 0; left && at < end && is_white_space(next_character(text, at));)
      begin = at;
    while (right && end > begin) {
      const std::string_view rest = std::string_view(text).substr(begin, end - begin);
      const char32_t last = last_character(rest);
      if (!is_white_space(last)) break;
      std::string bytes;
      append_character(bytes, last);
      end -= bytes.size();
    }
    from_start = from_start && begin == 0;
    text = text.substr(begin, end - begin);
  }
};

}  // namespace

PartKind<Normalizer> strip() {
  return {"Strip", [](const JsonItem& item) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<Strip>(item);
          }};
}

}  // namespace tandem::normalizers
