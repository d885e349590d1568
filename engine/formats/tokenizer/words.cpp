#include "engine/formats/tokenizer/words.h"

namespace tandem {

void WordSplitter::take(const TextRange& word) {
  const std::size_t bytes = word.end - word.begin;
  parts_.clear();
  std::size_t at = 0;
  for (const TextRange& match : matches_) {
    if (match.begin > at) parts_.push_back({{at, match.begin}, inverts_});
    parts_.push_back({match, !inverts_});
    at = match.end;
  }
  if (at < bytes) parts_.push_back({{at, bytes}, inverts_});

  const auto add = [&](const TextRange& part) {
    words_.ranges.push_back({word.begin + part.begin, word.begin + part.end});
  };
  const std::size_t first = words_.ranges.size();
  bool before = false;  // whether the part before is a match
  switch (behavior_) {
    case SplitBehavior::removed:
      for (const Part& part : parts_) {
        if (!part.matches) add(part.range);
      }
      return;
    case SplitBehavior::isolated:
      for (const Part& part : parts_) add(part.range);
      return;
    case SplitBehavior::contiguous:
    case SplitBehavior::merged_with_previous:
      for (const Part& part : parts_) {
        const bool joins = behavior_ == SplitBehavior::contiguous ? part.matches == before
                                                                  : part.matches && !before;
        if (joins && words_.ranges.size() > first)
          words_.ranges.back().end = word.begin + part.range.end;
        else
          add(part.range);
        before = part.matches;
      }
      return;
    case SplitBehavior::merged_with_next:
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        // A match begins the part after it, unless that is a match, too.
        const bool joins = parts_[i].matches && i + 1 < parts_.size() && !parts_[i + 1].matches;
        add(parts_[i].range);
        if (!joins) continue;
        words_.ranges.back().end = word.begin + parts_[i + 1].range.end;
        ++i;
      }
      return;
  }
}

}  // namespace tandem
