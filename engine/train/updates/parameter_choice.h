// Which parameters a step trains, and the optimizer that the configuration gives each.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/train/graph/training_graph.h"

namespace tandem {

struct Chosen {
  State parameter;
  OptimizerOptions options;
  /// Place of the table that sets the optimizer's kind.
  Where where;
  std::string kind_key;  // the key in that table
  int group = -1;        // index of its group in optimizer.groups; -1: none
};

/// Throws Error{usage}: nothing to train, selectors that match no parameter (nearest name given).
std::vector<Chosen> choose_parameters(const Graph& graph, const TrainingRequest& request);

/// Parameters that do not train in this step, but in other steps of the run: those of rules of
/// freeze that begin or end.
std::vector<State> resting_parameters(const Graph& graph, const TrainingRequest& request);

/// The name of the optimizer's kind by the name of the parameter, for all that this configuration
/// ever trains: what a checkpoint records about its optimizers. Throws Error{usage} where rules of
/// freeze leave nothing to train in the last steps.
std::map<std::string, std::string> parameter_kinds(const RunConfig& config, const Graph& forward);

/// Error{usage} where a parameter had another kind `before`. One that is not named there is fine.
void refuse_other_kinds(const std::map<std::string, std::string>& before, const RunConfig& config,
                        const Graph& forward);

/// Names of the parameters, caches of tables among them, that this configuration's optimizers
/// update row by row in some micro-batch at least: how many ids a micro-batch has may decide.
/// `forward`: after the forward passes.
std::vector<std::string> updated_by_rows(const RunConfig& config, const Graph& forward);

}  // namespace tandem
