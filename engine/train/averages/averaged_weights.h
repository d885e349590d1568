// Averages of weights in training graphs: states "NAME/ema", "NAME/swa" and "NAME/slow" that are
// updated after the optimizer's own states.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/train/averages/average_rates.h"
#include "engine/train/updates/add_update.h"

namespace tandem {

/// An input that is fed with what AverageRates says for each step.
struct FedAverage {
  std::string input;
  Average average = Average::ema;
};

/// Adds them for what was updated; `splits`: names of tables whose values lie in two halves.
/// Throws Error{usage} for a selector that matches none, and for such tables.
std::vector<FedAverage> add_averages(GraphBuilder& g, const OptimizerConfig& config,
                                     const std::vector<UpdateRequest>& updates,
                                     const std::vector<std::string>& splits);

/// "NAME/ema": the state in which an average of a parameter is kept; "" for the trained weights.
std::string averaged_name(const std::string& parameter, Weights weights);
/// The parameter that a state is an average of, if it is one.
std::string parameter_of_average(const std::string& state);

}  // namespace tandem
