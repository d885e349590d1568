// NFD: characters and their marks apart.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::normalizers {
namespace {

struct DecomposedForm final : Normalizer {
  void normalize(std::string& text, bool&) const override {
    text = normalized(text, UnicodeForm::nfd);
  }
};

}  // namespace

PartKind<Normalizer> nfd() {
  return {"NFD", [](const JsonItem&) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<DecomposedForm>();
          }};
}

}  // namespace tandem::normalizers
