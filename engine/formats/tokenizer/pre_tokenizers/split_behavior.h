// The key "behavior" of pre-tokenizers that cut.
#pragma once

#include "engine/formats/tokenizer/parts.h"

namespace tandem::pre_tokenizers {

inline SplitBehavior behavior_at(const JsonItem& item, const std::string& fallback) {
  const std::string name = text_at(item, "behavior", fallback);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  item.at("behavior")
      .refuse("not a way to split",
              "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

}  // namespace tandem::pre_tokenizers
