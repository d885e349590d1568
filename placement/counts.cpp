#include "placement/counts.h"

#include "engine/formats/count_text.h"
#include "engine/graph/text.h"

namespace tandem {

std::vector<std::string> nonzero_counts(const ItemCounts& counts) {
  std::vector<std::string> texts;
  const auto add = [&](int count, const char* noun) {
    if (count > 0) texts.push_back(count_text(count, noun));
  };
  add(counts.operators, "operator");
  add(counts.parameters, "parameter");
  add(counts.buffers, "buffer");
  add(counts.added, "added part");
  return texts;
}

std::string counts_text(const ItemCounts& counts) {
  ItemCounts others = counts;
  others.operators = others.parameters = 0;
  std::vector<std::string> texts = nonzero_counts(others);
  texts.insert(texts.begin(), {count_text(counts.operators, "operator"),
                               count_text(counts.parameters, "parameter")});
  return joined(texts);
}

}  // namespace tandem
