// Successive halving: how long trials run, round by round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/run_config.h"

namespace tandem::api {

/// The fractions of the full length that trials run for, round by round; the last one is 1.
/// `halving` 0: only that one.
std::vector<double> rounds_of(std::int64_t trials, int halving);

/// The keys that shorten a trial to a fraction of the full length; none for the full length.
std::vector<std::string> length_of_part(const RunConfig& config, double part);

}  // namespace tandem::api
