// Prepend: puts a text in front of a text that is not empty.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::normalizers {
namespace {

struct Prepend final : Normalizer {
  std::string prefix;

  explicit Prepend(const JsonItem& item) : prefix(item.at("prepend").any_text()) {}

  void normalize(std::string& text, bool&) const override {
    if (!text.empty()) text.insert(0, prefix);
  }
};

}  // namespace

PartKind<Normalizer> prepend() {
  return {"Prepend", [](const JsonItem& item) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<Prepend>(item);
          }};
}

}  // namespace tandem::normalizers
