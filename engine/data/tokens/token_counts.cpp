#include "engine/data/tokens/token_counts.h"

#include <algorithm>
#include <utility>

namespace tandem {

void TokenCounts::add_long(std::string place, std::int64_t length) {
  if (longest.size() == most_longest && longest.back().tokens >= length) return;
  const auto shorter = std::find_if(longest.begin(), longest.end(),
                                    [&](const LongText& one) { return one.tokens < length; });
  longest.insert(shorter, {std::move(place), length});
  if (longest.size() > most_longest) longest.pop_back();
}

}  // namespace tandem
