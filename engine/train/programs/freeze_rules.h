// Which rule of parameters.freeze decides about a parameter, and in which steps of a run rules
// hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/selector.h"
#include "engine/train/loop/run_length.h"

namespace tandem {

/// The rule that decides about each parameter: the last one that covers it.
class FreezeRules {
 public:
  /// For a graph with these names, which outlive this. Throws Error{usage} for a selector that
  /// cannot be read.
  FreezeRules(const ParametersConfig& config, const ParameterNames& names);

  /// Null where none covers the parameter: it trains. A table's cache counts as the table.
  const FreezeRule* of(const State& parameter) const;
  /// Whether it is frozen with the rules in the state `thawed`; a rule without an entry holds.
  bool freezes(const State& parameter, const std::vector<bool>& thawed) const;
  /// Whether it stays as it is in all steps.
  bool always_freezes(const State& parameter) const;
  /// A line for each rule that decides nothing, since later ones cover all that it covers.
  std::vector<std::string> without_effect(const Graph& graph) const;

 private:
  int last_of(const State& parameter) const;

  const std::vector<FreezeRule>& rules_;
  const ParameterNames& names_;
  std::vector<Selector> selectors_;
};

/// By rule: whether it does not hold in the step after `steps_done`. One with `until` that has
/// ended (in `before`, too) never holds again, whatever becomes of the batch size.
std::vector<bool> thawed_after(const std::vector<FreezeRule>& rules, const RunLength& length,
                               std::int64_t steps_done, std::vector<bool> before);

/// As above, where only the rules for the whole run hold: everything that ever trains does.
std::vector<bool> thawed_where_most_trains(const std::vector<FreezeRule>& rules);

/// Steps in which the same parameters train: their programs are the same.
struct FreezePhase {
  std::int64_t first_step = 1;
  std::vector<bool> thawed;  // by rule
  bool operator==(const FreezePhase&) const = default;
};

/// The phases of a run from its first step to its last one, in their order.
std::vector<FreezePhase> freeze_phases(const std::vector<FreezeRule>& rules,
                                       const RunLength& length);

/// An error in a phase, with words that name the phase: "(from step 3 on, by parameters.freeze fc1
/// until 2 steps)", which follow from the phase before.
Error error_in_phase(const Error& error, const std::vector<FreezeRule>& rules,
                     const FreezePhase& before, const FreezePhase& phase);

}  // namespace tandem
