// Digits: cuts numbers from the rest, into single digits where the settings ask for it.
#include "engine/formats/tokenizer/parts.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem::pre_tokenizers {
namespace {

struct Digits final : PreTokenizer {
  SplitBehavior behavior;

  explicit Digits(const JsonItem& item)
      : behavior(flag(item, "individual_digits", false) ? SplitBehavior::isolated
                                                        : SplitBehavior::contiguous) {}

  void split(Words& words) const override {
    WordSplitter(words, behavior).split_characters(is_number);
  }
};

}  // namespace

PartKind<PreTokenizer> digits() {
  return {"Digits", [](const JsonItem& item) -> std::unique_ptr<const PreTokenizer> {
            return std::make_unique<Digits>(item);
          }};
}

}  // namespace tandem::pre_tokenizers
