// Ends a run whose states or evaluation are not finite any more.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/train/loop/run.h"

namespace tandem {

/// Which states may hold infinities in a checkpoint: those of `infinite`, and unknown ones. Both
/// arguments have to outlive the result.
MayBeInfinite may_be_infinite(const StateStore& states, const std::set<std::string>& infinite);

class FiniteGuard {
 public:
  explicit FiniteGuard(Run& run) : run_(run) {}

  /// Records which states are not finite before any step.
  void record_start();
  /// Ranks that shard states: adds those that hold infinities in parts on other ranks.
  void share_infinite();
  /// Steps begin. Throws where a run that begins has states with NaN.
  void begin();

  /// Parameters and statistics that held infinities at the start, as masks do.
  const std::set<std::string>& infinite() const { return infinite_; }
  /// Which states may hold infinities in a checkpoint.
  MayBeInfinite allowed_in_checkpoint() const { return may_be_infinite(run_.states, infinite_); }

  /// Checks the next part of the states; false where it is not finite. Rank 0 only.
  bool look() { return watch_.look(run_.place()); }
  /// As above for all ranks together, not counting the bytes that devices copy for it.
  bool look_on_all_ranks();
  /// Whether all states of this rank are finite.
  bool are_all_finite() { return watch_.look_at_all(run_.place()).empty(); }
  /// Checks all states. Throws Error{diverged} naming those that are not finite.
  void refuse_bad_states();
  /// Throws where an evaluation is not finite: names the states that are the cause, if any.
  void refuse_bad_metrics(const std::vector<std::pair<std::string, double>>& values);
  /// Whether the data is the cause of the last refusal; what was trained is as good as before.
  bool is_data_the_cause() const { return data_is_the_cause_; }

  /// The causes of a loss that is not finite at a step, apart from what this step read; `fix` gets
  /// advice.
  std::vector<Diagnostic> causes_before(const StepResult& result, std::string& fix);
  /// Training data between two places that is not finite; at most the last epoch's worth of it.
  std::vector<Diagnostic> bad_data(const DataPosition& from, const DataPosition& to) const;

 private:
  void refuse_nan_at_start() const;
  void refuse_own_bad_states();
  /// The earliest place up to which these states are known to have been finite.
  FiniteWatch::Place finite_until(const std::vector<NotFiniteState>& bad) const;
  /// Fields of a source that the steps read.
  std::vector<int> fed(const DataSource& source) const;

  Run& run_;
  FiniteWatch watch_;
  std::set<std::string> infinite_;
  std::vector<NotFiniteState> nan_at_start_;
  bool data_is_the_cause_ = false;
};

/// The advice for values that are not finite: `fix`, with what float16 adds.
std::string with_float16_advice(const Run& run, const char* fix);

/// Whether it is so on all ranks; all of them ask.
bool is_on_all_ranks(const Run& run, const char* name, bool is_so);

}  // namespace tandem
