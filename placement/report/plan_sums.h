// Sums over the exchanges of a plan, for its text and its JSON.
#pragma once

#include <cstdint>

#include "include/tandem/plan.h"

namespace tandem {

/// What one rank exchanges in a whole step.
struct ExchangeSums {
  std::int64_t exchanges = 0;
  std::uint64_t bytes = 0;
  double seconds = 0, exposed_seconds = 0;
};

inline ExchangeSums exchange_sums(const api::Plan& plan) {
  ExchangeSums sums;
  for (const api::Plan::Exchange& exchange : plan.exchanges) {
    const auto times = static_cast<double>(exchange.times);
    sums.exchanges += exchange.times;
    sums.bytes += exchange.bytes * static_cast<std::uint64_t>(exchange.times);
    sums.seconds += exchange.seconds * times;
    sums.exposed_seconds += exchange.exposed_seconds * times;
  }
  return sums;
}

/// Whether a copy or an exchange is as good as never waited for.
constexpr bool is_hidden(double exposed_seconds) { return exposed_seconds < 1e-9; }

}  // namespace tandem
