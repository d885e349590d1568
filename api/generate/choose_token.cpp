#include "api/generate/choose_token.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tandem::api {

std::int64_t choose_token(std::span<const float> logits, const TokenChoice& how, double chance) {
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); })) return -1;
  const auto greatest = std::max_element(logits.begin(), logits.end());
  if (greatest == logits.end() || std::isinf(*greatest)) return -1;
  if (how.temperature <= 0) return greatest - logits.begin();

  std::vector<std::int64_t> order(logits.size());  // the tokens, likeliest first
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int64_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return logit(a) > logit(b); });
  if (how.top_k > 0 && how.top_k < static_cast<std::int64_t>(order.size()))
    order.resize(static_cast<std::size_t>(how.top_k));

  std::vector<double> weights;
  double sum = 0;
  for (const std::int64_t id : order) {
    const double lower = static_cast<double>(logit(id)) - static_cast<double>(*greatest);
    weights.push_back(std::exp(lower / how.temperature));
    sum += weights.back();
  }
  if (how.top_p < 1) {
    const double enough = how.top_p * sum;
    std::size_t kept = 0;
    for (sum = 0; kept < weights.size() && (kept == 0 || sum < enough); ++kept)
      sum += weights[kept];
    weights.resize(kept);
  }
  double left = chance * sum;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[weights.size() - 1];  // rounding has left something over
}

}  // namespace tandem::api
