// What a configured term knows about itself.
#include <algorithm>
#include <stdexcept>

#include "engine/training/config/run_config.h"

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

const OptionValue& LossTerm::option_of(std::string_view option) const {
  const auto found = options.find(option);
  if (found == options.end())
    throw std::logic_error("the loss term \"" + name + "\" has no option " + std::string(option));
  return found->second;
}

std::optional<std::int64_t> LossTerm::integer(std::string_view option) const {
  const auto found = options.find(option);
  if (found == options.end()) return std::nullopt;
  return std::get<std::int64_t>(found->second);
}

std::vector<double> LossTerm::numbers(std::string_view option) const {
  const auto found = options.find(option);
  if (found == options.end()) return {};
  return std::get<std::vector<double>>(found->second);
}

}  // namespace tandem
