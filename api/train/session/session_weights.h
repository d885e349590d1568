// The weights of a session that are used where its optimizer trains others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/graph.h"
#include "engine/runtime/program.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem::api {

/// Whether one of the optimizers trains weights that are ahead of those that are used.
bool have_lead(const OptimizerConfig& optimizers);

/// The states of a session: those that its programs hold, and those that wait for a program.
struct SessionStates {
  StateStore& held;
  std::map<std::string, HostTensor>& waiting;

  /// Empty where there is no such state.
  std::optional<HostTensor> find(const std::string& name) const;
  void put(const std::string& name, const HostTensor& value) const;
};

/// While it lives, parameters hold what is used instead of what is trained: the parameter less its
/// lead (OptimizerState::lead). Then they hold what they held before. Programs may be made in
/// between.
class SessionWeights {
 public:
  /// `forward` has the parameters; null: none has a lead.
  SessionWeights(const SessionStates& states, const Graph* forward);
  ~SessionWeights();
  SessionWeights(const SessionWeights&) = delete;
  SessionWeights& operator=(const SessionWeights&) = delete;

  /// Sets the lead of this parameter to 0: its value is then what is used.
  static void forget_lead(const SessionStates& states, const std::string& parameter);

 private:
  SessionStates states_;
  std::vector<NamedTensor> trained_;
};

}  // namespace tandem::api
