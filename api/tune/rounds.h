// Successive halving: how long trials run, round by round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/training/config/run_config.h"

namespace tandem::api {

/// Parts of the length that trials run for, round by round; the last one is all of it. `halving` 0:
/// that one alone.
std::vector<double> rounds_of(std::int64_t trials, int halving);

/// The keys that make a trial as long as a part of the whole; none for all of it.
std::vector<std::string> length_of_part(const RunConfig& config, double part);

}  // namespace tandem::api
