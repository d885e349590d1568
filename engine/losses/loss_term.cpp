// What a configured term knows about itself.
#include <algorithm>

#include "engine/config/run_config.h"

namespace tandem {

std::vector<std::string> LossTerm::fields() const {
  std::vector<std::string> names;
  if (!labels.empty() && !names_teacher(labels)) names.push_back(labels);
  if (!sample_weights.empty()) names.push_back(sample_weights);
  return names;
}

bool LossTerm::reads_value(std::string_view value) const {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace tandem
