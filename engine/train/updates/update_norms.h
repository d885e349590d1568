// log.norms: how large the gradients and the updates of chosen parameters are.
#pragma once

#include <string>
#include <vector>

#include "engine/config/report_config.h"
#include "engine/graph/builder.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/structures/function_ref.h"
#include "engine/train/graph/rank_sums.h"
#include "engine/train/updates/add_update.h"

namespace tandem {

/// Whether a selector of log.norms covers it.
bool is_in_norms(const LogConfig& config, const ParameterNames& names, const State& parameter);

/// Adds outputs to one training graph: "norm.gradient.PATH", the Euclidean norm of a gradient
/// before it is clipped, without the scale of the loss, and "norm.update.PATH", that of what a step
/// adds to the parameter. A step of several micro-batches has one of each.
class UpdateNorms {
 public:
  /// Throws Error{usage} for a selector that matches none of the updated parameters and none that
  /// are `resting`: these have norms in the steps that train them. Split tables have no norm of
  /// their update.
  UpdateNorms(GraphBuilder& g, RankSums& ranks, const LogConfig& config,
              const std::vector<UpdateRequest>& updates, const std::vector<State>& resting,
              FunctionRef<bool(const State& parameter)> is_split);

  /// For gradients that are summed over ranks and not clipped yet. `scale`: that of the loss, or
  /// none.
  void add_gradients(Updates& updates, const std::vector<UpdateRequest>& requests, ValueId scale);
  /// To be called before and after the updates are added.
  void keep_parameters();
  void add_updates();

  /// The outputs' names, in their order.
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Chosen {
    std::size_t update;
    std::string name, path;  // the parameter's
    bool is_split = false;   // in halves: what its update adds is not known
    ValueId before = {};
  };
  void add(const std::string& name, ValueId sum_of_squares, bool is_part);

  GraphBuilder& g_;
  RankSums& ranks_;
  std::vector<Chosen> chosen_;
  std::vector<std::string> names_;
};

}  // namespace tandem
