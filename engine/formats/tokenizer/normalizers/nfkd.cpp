// NFKD: NFD, and characters that only look otherwise become the usual ones.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct CompatibleDecomposedForm final : Normalizer {
  void normalize(std::string& text, bool&) const override {
    text = normalized(text, UnicodeForm::nfkd);
  }
};

}  // namespace

PartKind<Normalizer> nfkd() {
  return {"NFKD", [](const JsonItem&) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<CompatibleDecomposedForm>();
          }};
}

}  // namespace tandem::normalizers
