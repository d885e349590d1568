// What a configured term, and all of them together, know about themselves.
#include <algorithm>

#include "engine/config/run_config.h"
#include "engine/losses/loss.h"

namespace tandem {

std::vector<std::string> LossTerm::fields() const {
  std::vector<std::string> names;
  if (!labels.empty() && !names_teacher(labels)) names.push_back(labels);
  for (const std::string& field : other_fields) {
    if (!field.empty()) names.push_back(field);
  }
  if (!sample_weights.empty()) names.push_back(sample_weights);
  return names;
}

bool LossTerm::reads_value(std::string_view value) const {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool LossConfig::compares_samples() const {
  return std::any_of(terms.begin(), terms.end(),
                     [](const LossTerm& term) { return term.kind->compares_samples; });
}

}  // namespace tandem
