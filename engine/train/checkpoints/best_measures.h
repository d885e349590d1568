// What the value of eval.best is measured by.
#pragma once

#include <map>
#include <string>

#include "engine/config/run_config.h"

namespace tandem {

/// The keys that decide what eval.best means, with their values as TOML: the metric, which weights
/// are evaluated, and for the metric "loss" its terms. Empty where there is no eval.best.
std::map<std::string, std::string> best_measures(const RunConfig& config);

}  // namespace tandem
