// NFKC: NFC, and characters that only look otherwise become the usual ones.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct CompatibleComposedForm final : Normalizer {
  void normalize(std::string& text, bool&) const override {
    text = normalized(text, UnicodeForm::nfkc);
  }
};

}  // namespace

PartKind<Normalizer> nfkc() {
  return {"NFKC", [](const JsonItem&) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<CompatibleComposedForm>();
          }};
}

}  // namespace tandem::normalizers
