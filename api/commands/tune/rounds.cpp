#include "api/commands/tune/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tandem::api {

std::vector<double> rounds_of(std::int64_t trials, int halving) {
  std::vector<double> parts{1};
  if (halving == 0) return parts;
  for (std::int64_t left = trials / halving; left >= 1; left /= halving)
    parts.insert(parts.begin(), parts.front() / halving);
  return parts;
}

std::vector<std::string> length_of_part(const RunConfig& config, double part) {
  std::vector<std::string> keys;
  if (part >= 1) return keys;
  if (config.steps) {
    const double steps = std::ceil(static_cast<double>(*config.steps) * part);
    keys.push_back(fmt::format("steps={:.0f}", std::max(1.0, steps)));
  }
  if (config.epochs) keys.push_back(fmt::format("epochs={}", *config.epochs * part));
  return keys;
}

}  // namespace tandem::api
