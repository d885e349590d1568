// Sequence: one normalizer after the other.
#include "engine/formats/tokenizer/parts.h"

namespace tandem::normalizers {
namespace {

struct Sequence final : Normalizer {
  std::vector<std::unique_ptr<const Normalizer>> parts;

  explicit Sequence(const JsonItem& item) {
    for (const JsonItem& part : item.at("normalizers").list())
      parts.push_back(read_normalizer(part));
  }

  void normalize(std::string& text, bool& from_start) const override {
    for (const auto& part : parts) {
      part->normalize(text, from_start);
      check_size(text);
    }
  }
};

}  // namespace

PartKind<Normalizer> sequence() {
  return {"Sequence", [](const JsonItem& item) -> std::unique_ptr<const Normalizer> {
            return std::make_unique<Sequence>(item);
          }};
}

}  // namespace tandem::normalizers
