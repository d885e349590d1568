// A training: step by step, on accelerators with the next one launched before the loss of the last
// one is checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/structures/function_ref.h"
#include "engine/train/loop/run_start.h"
#include "engine/train/loop/trainer.h"

namespace tandem {

/// Owns the parts of the loop, in the order in which they use each other.
class TrainingLoop {
 public:
  Run run;
  std::shared_ptr<TrainingObserver> observer;
  std::vector<MemoryUse> memory;  // per device: of all programs of the run together
  RunLog log{run, *observer};
  FiniteGuard guard{run};
  BestEvaluation best{run, log};
  Saver saver{run, log, guard, best};
  RunSignals signals;
  RunEvaluation evaluation{run, log, guard, saver, signals};
  Steps steps{run, signals};
  StepCheck check{run, log, guard, saver, steps};
  RunStart start{run, log, guard, evaluation, check, *observer};

  /// Builds all programs, initialises the parameters. Throws Error with everything that is wrong.
  TrainingLoop(RunConfig config, RunParts parts, DataSets data,
               std::shared_ptr<TrainingObserver> own_observer);

  /// All steps from the place of the run to its end.
  TrainingResult train();
  /// Up to `count` steps, one by one, without logging or checkpoints, as Training::walk.
  void walk(std::int64_t count, FunctionRef<bool(double loss, std::optional<double> lr)> goes_on);
  /// The error that ends the run, with what --resume continues from where it has diverged.
  Error with_newest_checkpoint(const Error& error) const;

 private:
  void open_epochs();
  void set_first_position();
  void initialise_states(const Graph& forward);
  void check_data(const Graph& forward);
  void drop_start_values(const Graph& forward);

  /// Whether the steps go on after the evaluation of this one.
  bool evaluate();
  bool ends_here() const;
  StepUse use_of(std::uint64_t step, bool is_logged) const;
  /// Launches the next step. Saves what was trained before it throws what the loader could not
  /// read.
  void launch(const StepUse& use);
  void take_and_check() { check.check(steps.take()); }
  /// Whether the step after this one may be launched before its loss is checked.
  bool may_go_ahead(std::uint64_t step, const StepUse& use, const Calendar& calendar);
  /// What is due after a step that was checked; false where the run ends there.
  bool do_what_is_due(std::uint64_t step, Calendar& calendar);
  void report_skipped_steps();
  TrainingResult result() const;
  void write_summary() const;
};

}  // namespace tandem
