// NFC: characters and their marks as one where Unicode has one.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct ComposedForm final : Normalizer {
  void normalize(std::string& text, bool&) const override {
    text = normalized(text, UnicodeForm::nfc);
  }
};

}  // namespace

PartKind<Normalizer> nfc() {
  return {"NFC", [](const JsonItem&) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<ComposedForm>();
          }};
}

}  // namespace tandem::normalizers
