#include "placement/counts.h"

#include "engine/graph/text.h"

namespace tandem {

std::string count_text(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::vector<std::string> nonzero_counts(const ItemCounts& counts) {
  std::vector<std::string> texts;
  const auto add = [&](int count, const char* noun) {
    if (count > 0) texts.push_back(count_text(static_cast<std::size_t>(count), noun));
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
  texts.insert(texts.begin(),
               {count_text(static_cast<std::size_t>(counts.operators), "operator"),
                count_text(static_cast<std::size_t>(counts.parameters), "parameter")});
  return joined(texts);
}

}  // namespace tandem
